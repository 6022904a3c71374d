"""What several tests share: servers, databases, containers."""
