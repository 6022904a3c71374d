"""Apache Kafka itself: one node, broker and controller in one, from its own jars.

The jars come by Maven, once, into `.cache/` of this repository. Where Java or Maven is missing, or
the jars cannot be had, tests are skipped with the reason.
"""

import contextlib
import re
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from billing_shell.embedded_server import HOST, EmbeddedServer, accepts, free_port
from billing_shell.server_process import ServerProcess
from tests.py.support.worker_process import ROOT

VERSION = "4.3.1"
OLDEST_JAVA = 17

_CACHE = ROOT / ".cache" / "apache-kafka"
_FETCH_SECONDS = 600.0
_FORMAT_SECONDS = 120.0
_PROBE_SECONDS = 20.0

_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>billing</groupId>
  <artifactId>apache-kafka</artifactId>
  <version>{VERSION}</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=BROKER://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=BROKER://{host}:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
log.dirs={logs}
num.partitions=3
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=4194304
"""


class ApacheKafka(EmbeddedServer):
    """A broker whose topics and messages survive its death."""

    name: ClassVar[str] = "Apache Kafka"

    def __init__(self, directory: Path, java: Path, jars: Path) -> None:
        """Describe a broker; nothing starts.

        Args:
            directory: for its settings and its log.
            java: the program.
            jars: directory of Kafka's jars.
        """
        super().__init__(directory)
        self._java = java
        self._jars = jars
        self._controller = free_port()
        self._cluster_id = uuid.uuid4().hex[:22]

    @property
    def bootstrap(self) -> str:
        """Its address as `host:port`."""
        return f"{HOST}:{self.port}"

    def _prepare(self) -> None:
        # It does not refuse root, and jars in a work tree are not for every account to read.
        self._account = None
        super()._prepare()

    def _command(self, port: int) -> list[str | Path]:
        properties = self.directory / "server.properties"
        logs = self.directory / "logs"
        properties.write_text(
            _PROPERTIES.format(host=HOST, port=port, controller=self._controller, logs=logs)
        )
        if not logs.exists():
            subprocess.run(
                [
                    *self._program("kafka.tools.StorageTool"),
                    *("format", "--cluster-id", self._cluster_id, "--config", properties),
                ],
                check=True,
                capture_output=True,
                timeout=_FORMAT_SECONDS,
            )
        return [*self._program("kafka.Kafka"), properties]

    def _program(self, main: str) -> list[str | Path]:
        return [
            *(self._java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-cp", f"{self._jars}/*", main),
        ]

    def _is_ready(self, process: ServerProcess, port: int) -> bool:  # noqa: ARG002 - by its name
        if not accepts(port):
            return False
        client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
        try:
            return bool(client.list_topics(timeout=_PROBE_SECONDS).cluster_id == self._cluster_id)
        except KafkaException:
            return False

    def _stop(self, process: ServerProcess) -> None:
        process.stop((signal.SIGTERM, 30.0))


@contextlib.contextmanager
def apache_kafka(directory: Path) -> Iterator[ApacheKafka]:
    """Run a broker; skip the test, with the reason, where that cannot be."""
    with ApacheKafka(directory, _java(), _fetched_jars()) as broker:
        yield broker


def _java() -> Path:
    java = shutil.which("java")
    if java is None:
        pytest.skip("Apache Kafka needs Java, which is not installed")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        pytest.skip(f"Apache Kafka 4 needs Java {OLDEST_JAVA} or later; this is {said!r}")
    return Path(java).resolve()


def _fetched_jars() -> Path:
    """Kafka's jars, fetched unless they are there."""
    jars = _CACHE / VERSION
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("Apache Kafka's jars come by Maven, which is not installed")
    unfinished = _CACHE / f"{VERSION}-{uuid.uuid4().hex[:8]}"
    unfinished.mkdir(parents=True)
    pom = unfinished / "pom.xml"
    pom.write_text(_POM)
    fetched = subprocess.run(
        [
            *(maven, "--batch-mode", "--quiet", "--file", pom, "dependency:copy-dependencies"),
            *("-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"),
        ],
        capture_output=True,
        text=True,
        timeout=_FETCH_SECONDS,
        check=False,
    )
    if fetched.returncode != 0:
        shutil.rmtree(unfinished)
        pytest.skip(f"Apache Kafka's jars cannot be fetched: {fetched.stdout[-500:]}")
    pom.unlink()
    unfinished.rename(jars)
    return jars
