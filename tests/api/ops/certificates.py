"""certificates.py: certificates of every kind, and `attnd health` with a server that uses one."""

import os
import pathlib
import signal
import subprocess
import tempfile

from attnd import Server, wait_until
from suite import registry

KINDS = {"RSA": ["rsa:2048"],
         "RSA-PSS": ["rsa-pss", "-pkeyopt", "rsa_keygen_bits:2048"],
         "ECDSA P-256": ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
         "ECDSA P-384": ["ec", "-pkeyopt", "ec_paramgen_curve:secp384r1"],
         "Ed25519": ["ed25519"],
         "Ed448": ["ed448"]}
TESTS = []
test = registry(TESTS)


class SecureServer(Server):
    """A server that speaks https: it is ready when `attnd health` says so."""

    def __init__(self, program, folder, **settings):
        self.settings = {"ATTND_TLS_CERT": f"{folder}/cert", "ATTND_TLS_KEY": f"{folder}/key", **settings}
        super().__init__(program, environment=self.settings)

    def health(self, *arguments, **changed):
        """(status, standard error) of `attnd health` with the server's own settings, as in a container."""
        environment = {**os.environ, **self.settings, "ATTND_LISTEN": self.url.rsplit("/", 1)[1], **changed}
        done = subprocess.run([self.program, "health", *arguments], env=environment, capture_output=True, text=True,
                              timeout=60)
        return done.returncode, done.stderr

    def _is_ready(self):
        return self.health("ready", ATTND_HEALTH_INSECURE="on")[0] == 0


def make_certificate(folder, kind="ECDSA P-256", name="attnd"):
    subprocess.run(["openssl", "req", "-x509", "-newkey", *KINDS[kind], "-nodes", "-keyout", f"{folder}/key", "-out",
                    f"{folder}/cert", "-subj", f"/CN={name}", "-days", "2"], capture_output=True, check=True)


@test
def certificates_of_every_algorithm_are_served(program):
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            make_certificate(folder, kind)
            with SecureServer(program, folder) as server:
                status, said = server.health()
                assert status == 0, f"{kind}: {said}"


@test
def the_key_of_another_certificate_is_refused(program):
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            make_certificate(folder, kind)
            one = pathlib.Path(f"{folder}/cert").read_text()
            make_certificate(folder, kind)
            pathlib.Path(f"{folder}/cert").write_text(one)
            done = subprocess.run([program, "--listen", "127.0.0.1:0", "--tls-cert", f"{folder}/cert", "--tls-key",
                                   f"{folder}/key"], capture_output=True, text=True, timeout=60)
            assert done.returncode == 1 and "do not belong together" in done.stderr, (kind, done.stderr)


@test
def a_file_that_cannot_be_read_is_refused_with_the_reason(program):
    done = subprocess.run([program, "--listen", "127.0.0.1:0", "--tls-cert", "/nowhere/cert", "--tls-key", "/nowhere/key"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "TLS: /nowhere/cert: No such file or directory" in done.stderr, done.stderr


@test
def health_takes_the_configured_certificate_and_no_other(program):
    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder)
        with SecureServer(program, folder) as server:
            assert server.health() == (0, "")
            assert server.health("live") == (0, "")
            assert server.health(ATTND_TLS_KEY="none") == (0, ""), "the private key is not needed"
            status, said = server.health(ATTND_TLS_CERT="none", ATTND_TLS_KEY="none")
            assert status == 1 and "no answer to GET /readyz" in said, said
            status, said = server.health(ATTND_TLS_CERT="/nowhere")
            assert status == 1 and "TLS: /nowhere: " in said, said
            assert server.health("--insecure", ATTND_TLS_CERT="/nowhere") == (0, "")
            make_certificate(folder)
            status, said = server.health()
            assert status == 1 and "the server shows another certificate than" in said, said
            assert server.health("--insecure") == (0, "")
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: server.health() == (0, ""), "the new certificate is not served")


@test
def health_of_a_plain_server_over_tls_says_why_not(program):
    with tempfile.TemporaryDirectory() as folder, Server(program) as server:
        make_certificate(folder)
        done = subprocess.run([program, "health", "--listen", server.url.rsplit("/", 1)[1], "--tls-cert",
                               f"{folder}/cert"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "TLS: no handshake: " in done.stderr, done.stderr


def handshake(server, *options):
    """The protocol that openssl negotiated with the server; "" without one."""
    done = subprocess.run(["openssl", "s_client", "-connect", server.url.split("//")[1], *options], input="",
                          capture_output=True, text=True, timeout=60)
    agreed = [line for line in done.stdout.splitlines() if line.startswith("New, ")]
    return "" if not agreed or "NONE" in agreed[0] else agreed[0]


@test
def old_protocols_and_ciphers_are_refused(program):
    any_cipher = ("-cipher", "ALL:@SECLEVEL=0")
    for kind, family in (("ECDSA P-256", "ECDSA"), ("RSA", "RSA")):
        with tempfile.TemporaryDirectory() as folder:
            make_certificate(folder, kind)
            with SecureServer(program, folder) as server:
                assert "TLSv1.3" in handshake(server, "-tls1_3")
                assert "TLSv1.2" in handshake(server, "-tls1_2")
                for version in ("-tls1", "-tls1_1"):
                    assert handshake(server, version, *any_cipher) == "", version
                for cipher in ("AES128-SHA", "AES256-SHA"):
                    agreed = handshake(server, "-tls1_2", "-cipher", f"ECDHE-{family}-{cipher}:{cipher}:@SECLEVEL=0")
                    assert agreed == "", agreed


@test
def every_connection_has_a_secret_of_its_own(program):
    """TLS 1.2 without RSA key exchange, which an RSA certificate alone would allow."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder, "RSA")
        with SecureServer(program, folder) as server:
            for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-CCM", "AES256-CCM"):
                assert handshake(server, "-tls1_2", "-cipher", cipher) == "", cipher
            for cipher in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"):
                assert cipher in handshake(server, "-tls1_2", "-cipher", cipher), cipher
