"""TLS as a node speaks it: 1.2 and later, forward secret, its certificate read anew when the files change."""

import ssl
from typing import Any

from cryptography import x509

from foliot.sdk.tls import Reloaded, UnusableFiles, load_pair
from foliot.settings import Settings, SettingsError

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2; all of 1.3 are good
SUBJECT = "foliot.tls_subject"


def server_tls(settings: Settings) -> Reloaded[ssl.SSLContext] | None:
    """What the next connection is to be met with; None where the node does not speak TLS. Raises `SettingsError`."""
    if not settings.tls_cert:
        return None
    files = (settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    try:
        return Reloaded(files, lambda: _server_context(*files))
    except UnusableFiles as error:
        raise SettingsError(f"{error}. They are set with --tls-cert, --tls-key and --tls-client-ca") from None


def _server_context(certificate: str, key: str, client_ca: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    load_pair(context, certificate, key)
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL  # what is shown must be good; who needs to show one is decided by call
        # A resumed session would bring back a certificate that was checked against an earlier authority.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def asks_for_certificates(connection: Any) -> bool:
    """Whether the node asked the other end of this connection for a certificate."""
    return connection is not None and connection.context.verify_mode is not ssl.CERT_NONE


def subject_of(connection: Any) -> str | None:
    """Whom the client's certificate names, as RFC 4514 writes it (`CN=worker-1,O=Example`); where it has no subject,
    its first alternative name. None where none was shown, or one that can not be read."""
    shown = connection.getpeercert(binary_form=True)
    if shown is None:
        return None
    try:
        certificate = x509.load_der_x509_certificate(shown)
        return certificate.subject.rfc4514_string() or _first_name(certificate)
    except ValueError:
        return None


def _first_name(certificate: x509.Certificate) -> str:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    return next((str(name.value) for name in names), "")
