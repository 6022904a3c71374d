"""`python -m billing_shell` is `billing`."""

from billing_shell.cli import main

if __name__ == "__main__":
    main()
