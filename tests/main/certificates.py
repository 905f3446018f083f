"""Certificates as files, made for a test."""

import ssl
from pathlib import Path

import trustme
from cryptography import x509


class Authority:
    """One that vouches; `file` is what those who trust it are given."""

    def __init__(self, folder: Path, name: str) -> None:
        self._ca = trustme.CA(organization_name=name)
        self._folder = folder
        self.file = folder / f"{name}-ca.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def node(self, *names: str) -> tuple[Path, Path]:
        """The files of a certificate and its key. Called again, they hold other ones."""
        return self._write("node", self._ca.issue_cert(*(names or ("localhost", "127.0.0.1"))))

    def worker(self, name: str) -> tuple[Path, Path]:
        return self._write(name, self._ca.issue_cert(f"{name}.example", common_name=name, organization_name="Example"))

    def trusting(self, shown: tuple[Path, Path] | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.file)
        if shown is not None:
            context.load_cert_chain(*shown)
        return context

    def _write(self, name: str, made: trustme.LeafCert) -> tuple[Path, Path]:
        certificate, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        made.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        return certificate, key


def serial_of(connection: ssl.SSLSocket) -> int:
    """Which certificate the other end has shown."""
    shown = connection.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def serial_in(file: Path) -> int:
    return x509.load_pem_x509_certificate(file.read_bytes()).serial_number
