/*
 * tls.c: the certificate of https.
 *
 * The library asks for the certificate at each handshake. A certificate that was replaced is kept until the end,
 * because a handshake may still use it. Reloads are rare, and a certificate takes some kilobytes.
 */
#include "http/connections/server.h"

#include <stdio.h>

#if defined(HAVE_GNUTLS)

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_MAX = 16 };

struct certificate {
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned length;
    gnutls_privkey_t key;
    struct certificate *before;
};

struct tls {
    char *certificate_path, *key_path;
    _Atomic(struct certificate *) current;
};

static void certificate_free(struct certificate *certificate)
{
    for (unsigned i = 0; i < certificate->length; i++)
        gnutls_pcert_deinit(&certificate->chain[i]);
    if (certificate->key != NULL)
        gnutls_privkey_deinit(certificate->key);
    free(certificate);
}

/* 0, or a GnuTLS error code. */
static int read_chain(const char *path, struct certificate *certificate)
{
    gnutls_datum_t text = {NULL, 0};
    unsigned length = CHAIN_MAX;
    int failure = gnutls_load_file(path, &text);
    if (failure != 0)
        return failure;
    failure = gnutls_pcert_list_import_x509_raw(certificate->chain, &length, &text, GNUTLS_X509_FMT_PEM, 0);
    gnutls_free(text.data);
    certificate->length = failure == 0 ? length : 0;
    return failure;
}

static int read_key(const char *path, struct certificate *certificate)
{
    gnutls_datum_t text = {NULL, 0};
    int failure = gnutls_load_file(path, &text);
    if (failure == 0)
        failure = gnutls_privkey_init(&certificate->key);
    if (failure == 0)
        failure = gnutls_privkey_import_x509_raw(certificate->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (text.data != NULL)
        gnutls_memset(text.data, 0, text.size);
    gnutls_free(text.data);
    return failure;
}

/* The id is a digest of the public key; it works for every algorithm. */
static int key_id(gnutls_pubkey_t key, unsigned char *id, size_t size)
{
    return gnutls_pubkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, id, &size);
}

/* Whether the certificate belongs to this private key: 0, or a GnuTLS error code. */
static int check_pair(const struct certificate *certificate)
{
    enum { SHA256_BYTES = 32 };
    unsigned char of_certificate[SHA256_BYTES], of_key[SHA256_BYTES];
    gnutls_pubkey_t key = NULL;
    int failure = gnutls_pubkey_init(&key);
    if (failure == 0)
        failure = gnutls_pubkey_import_privkey(key, certificate->key, 0, 0);
    if (failure == 0)
        failure = key_id(key, of_key, sizeof of_key);
    if (failure == 0)
        failure = key_id(certificate->chain[0].pubkey, of_certificate, sizeof of_certificate);
    if (failure == 0 && memcmp(of_key, of_certificate, sizeof of_key) != 0)
        failure = GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
    if (key != NULL)
        gnutls_pubkey_deinit(key);
    return failure;
}

/* GnuTLS leaves to errno why a file cannot be read. */
static const char *reason_of(int failure)
{
    return failure == GNUTLS_E_FILE_ERROR && errno != 0 ? strerror(errno) : gnutls_strerror(failure);
}

static struct certificate *certificate_read(const struct tls *tls, char *message, size_t message_size)
{
    struct certificate *certificate = calloc(1, sizeof *certificate);
    if (certificate == NULL) {
        snprintf(message, message_size, "no memory for the certificate");
        return NULL;
    }
    const char *what = tls->certificate_path;
    errno = 0;
    int failure = read_chain(tls->certificate_path, certificate);
    if (failure == 0) {
        what = tls->key_path;
        failure = read_key(tls->key_path, certificate);
    }
    if (failure == 0) {
        what = "certificate and key do not belong together";
        failure = check_pair(certificate);
    }
    if (failure == 0)
        return certificate;
    snprintf(message, message_size, "TLS: %s: %s", what, reason_of(failure));
    certificate_free(certificate);
    return NULL;
}

struct tls *tls_create(const char *certificate_path, const char *key_path, char *message, size_t message_size)
{
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES ||
        MHD_is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK) != MHD_YES) {
        snprintf(message, message_size, "TLS: this libmicrohttpd was built without it; put a proxy in front");
        return NULL;
    }
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls != NULL) {
        tls->certificate_path = strdup(certificate_path);
        tls->key_path = strdup(key_path);
    }
    if (tls == NULL || tls->certificate_path == NULL || tls->key_path == NULL)
        snprintf(message, message_size, "no memory for the certificate");
    else if (tls_reload(tls, message, message_size))
        return tls;
    tls_destroy(tls);
    return NULL;
}

void tls_destroy(struct tls *tls)
{
    if (tls == NULL)
        return;
    for (struct certificate *certificate = tls->current, *before; certificate != NULL; certificate = before) {
        before = certificate->before;
        certificate_free(certificate);
    }
    free(tls->certificate_path);
    free(tls->key_path);
    free(tls);
}

bool tls_reload(struct tls *tls, char *message, size_t message_size)
{
    struct certificate *certificate = certificate_read(tls, message, message_size);
    if (certificate == NULL)
        return false;
    certificate->before = tls->current;
    tls->current = certificate;
    return true;
}

/* The library stores its connection as the pointer of the session. lifecycle.c has ours for it. */
static int retrieve(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                    const gnutls_pk_algorithm_t *algorithms, int algorithm_count, gnutls_pcert_st **chain,
                    unsigned *length, gnutls_privkey_t *key)
{
    (void)names;
    (void)name_count;
    (void)algorithms;
    (void)algorithm_count;
    struct MHD_Connection *mhd = gnutls_session_get_ptr(session);
    const struct connection *connection = mhd != NULL ? connection_of(mhd) : NULL;
    if (connection == NULL)
        return -1;
    struct certificate *certificate = atomic_load(&connection->server->tls->current);
    *chain = certificate->chain;
    *length = certificate->length;
    *key = certificate->key;
    return 0;
}

/* The library takes the function as a plain pointer, which POSIX allows. */
void *tls_callback(void)
{
    int (*const callback)(gnutls_session_t, const gnutls_datum_t *, int, const gnutls_pk_algorithm_t *, int,
                          gnutls_pcert_st **, unsigned *, gnutls_privkey_t *) = retrieve;
    void *plain;
    memcpy(&plain, &callback, sizeof plain);
    return plain;
}

#else

struct tls *tls_create(const char *certificate_path, const char *key_path, char *message, size_t message_size)
{
    (void)certificate_path;
    (void)key_path;
    snprintf(message, message_size, "TLS: this server was built without GnuTLS; put a proxy in front");
    return NULL;
}

void tls_destroy(struct tls *tls)
{
    (void)tls;
}

bool tls_reload(struct tls *tls, char *message, size_t message_size)
{
    (void)tls;
    (void)message;
    (void)message_size;
    return false;
}

void *tls_callback(void)
{
    return NULL;
}

#endif
