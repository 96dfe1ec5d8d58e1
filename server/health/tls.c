/* tls.c: a TLS client for one short exchange. */
#include "health/tls.h"

#include <stdio.h>

#if defined(HAVE_GNUTLS)

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>

struct health_tls {
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

/* Returns a GnuTLS error code. The caller deinits *first, unless it is NULL. */
static int read_first(const char *path, gnutls_x509_crt_t *first)
{
    gnutls_datum_t text = {NULL, 0};
    int failure = gnutls_load_file(path, &text);
    if (failure == 0)
        failure = gnutls_x509_crt_init(first);
    if (failure == 0)
        failure = gnutls_x509_crt_import(*first, &text, GNUTLS_X509_FMT_PEM);
    gnutls_free(text.data);
    return failure;
}

static bool shows_certificate_of(gnutls_session_t session, const char *path, char *message, size_t message_size)
{
    gnutls_x509_crt_t wanted = NULL;
    unsigned length = 0;
    const int failure = read_first(path, &wanted);
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &length);
    const bool is_same = failure == 0 && shown != NULL && length > 0 && gnutls_x509_crt_equals2(wanted, &shown[0]) != 0;
    if (failure != 0)
        snprintf(message, message_size, "TLS: %s: %s", path, gnutls_strerror(failure));
    else if (!is_same)
        snprintf(message, message_size,
                 "TLS: the server shows another certificate than %s has; a server reads a new one on SIGHUP", path);
    if (wanted != NULL)
        gnutls_x509_crt_deinit(wanted);
    return is_same;
}

/* Returns a GnuTLS error code. */
static int shake_hands(struct health_tls *tls, int fd, unsigned patience_ms)
{
    int failure = gnutls_certificate_allocate_credentials(&tls->credentials);
    if (failure == 0)
        failure = gnutls_init(&tls->session, GNUTLS_CLIENT);
    if (failure == 0)
        failure = gnutls_set_default_priority(tls->session);
    if (failure == 0)
        failure = gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
    if (failure != 0)
        return failure;
    gnutls_transport_set_int(tls->session, fd);
    gnutls_handshake_set_timeout(tls->session, patience_ms);
    gnutls_record_set_timeout(tls->session, patience_ms);
    do
        failure = gnutls_handshake(tls->session);
    while (failure == GNUTLS_E_INTERRUPTED || failure == GNUTLS_E_WARNING_ALERT_RECEIVED);
    return failure;
}

struct health_tls *health_tls_open(int fd, const char *certificate_path, unsigned patience_ms, char *message,
                                   size_t message_size)
{
    struct health_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        snprintf(message, message_size, "no memory for TLS");
        return NULL;
    }
    const int failure = shake_hands(tls, fd, patience_ms);
    if (failure != 0)
        snprintf(message, message_size, "TLS: no handshake: %s", gnutls_strerror(failure));
    else if (certificate_path == NULL || shows_certificate_of(tls->session, certificate_path, message, message_size))
        return tls;
    health_tls_close(tls);
    return NULL;
}

bool health_tls_send(struct health_tls *tls, const char *bytes, size_t size)
{
    ssize_t sent;
    do
        sent = gnutls_record_send(tls->session, bytes, size);
    while (sent == GNUTLS_E_INTERRUPTED);
    return sent >= 0 && (size_t)sent == size;
}

/* Some records have no bytes for us, such as session tickets; GnuTLS then asks to be called again. */
bool health_tls_receive(struct health_tls *tls, char *bytes, size_t size)
{
    enum { RECORDS_MAX = 16 };
    size_t got = 0;
    for (int i = 0; got < size && i < RECORDS_MAX; i++) {
        const ssize_t part = gnutls_record_recv(tls->session, bytes + got, size - got);
        if (part == 0 || (part < 0 && gnutls_error_is_fatal((int)part) != 0))
            return false;
        got += part > 0 ? (size_t)part : 0;
    }
    return got == size;
}

void health_tls_close(struct health_tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->session != NULL)
        gnutls_deinit(tls->session);
    if (tls->credentials != NULL)
        gnutls_certificate_free_credentials(tls->credentials);
    free(tls);
}

#else

struct health_tls *health_tls_open(int fd, const char *certificate_path, unsigned patience_ms, char *message,
                                   size_t message_size)
{
    (void)fd;
    (void)certificate_path;
    (void)patience_ms;
    snprintf(message, message_size, "TLS: this attnd was built without GnuTLS");
    return NULL;
}

bool health_tls_send(struct health_tls *tls, const char *bytes, size_t size)
{
    (void)tls;
    (void)bytes;
    (void)size;
    return false;
}

bool health_tls_receive(struct health_tls *tls, char *bytes, size_t size)
{
    (void)tls;
    (void)bytes;
    (void)size;
    return false;
}

void health_tls_close(struct health_tls *tls)
{
    (void)tls;
}

#endif
