/* commands.c: the commands of attnd other than serving and importing: key and health, which sends one GET. */
#include "program/commands.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#if defined(HAVE_GNUTLS)
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#endif

#include "service/keys.h"

/* The time limit of connecting, of sending and of receiving, each. */
enum { PATIENCE_S = 2 };

/* ---- the connection ---- */

/* The address at which this machine can connect to a server that listens on host. */
static const char *reachable(const char *host)
{
    if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

static int connect_to(const struct addrinfo *address)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    const int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static int open_connection(const char *host, const char *port, char *message, size_t message_size)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    const int failure = getaddrinfo(host, port, &hints, &addresses);
    if (failure != 0) {
        snprintf(message, message_size, "\"%s\" is not an address: %s", host, gai_strerror(failure));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *address = addresses; address != NULL && fd < 0; address = address->ai_next)
        fd = connect_to(address);
    if (fd < 0)
        snprintf(message, message_size, "no server answers at %s:%s: %s", host, port, strerror(errno));
    freeaddrinfo(addresses);
    return fd;
}

/* ---- TLS ---- */

/*
 * The client connects to an address, usually the loopback, so it has no name to compare with the certificate. Instead
 * the server must show the certificate from its settings, and prove that it has the key.
 */
#if defined(HAVE_GNUTLS)

struct tls {
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
static int shake_hands(struct tls *tls, int fd, unsigned patience_ms)
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

/* tls may be NULL. */
static void tls_close(struct tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->session != NULL)
        gnutls_deinit(tls->session);
    if (tls->credentials != NULL)
        gnutls_certificate_free_credentials(tls->credentials);
    free(tls);
}

/*
 * Shakes hands over the connected socket fd, which the caller still owns. certificate_path is a PEM file; the server
 * must show its first certificate. NULL accepts any certificate. Returns NULL when the handshake fails, and in a build
 * without GnuTLS; message says why.
 */
static struct tls *tls_open(int fd, const char *certificate_path, unsigned patience_ms, char *message,
                            size_t message_size)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        snprintf(message, message_size, "no memory for TLS");
        return NULL;
    }
    const int failure = shake_hands(tls, fd, patience_ms);
    if (failure != 0)
        snprintf(message, message_size, "TLS: no handshake: %s", gnutls_strerror(failure));
    else if (certificate_path == NULL || shows_certificate_of(tls->session, certificate_path, message, message_size))
        return tls;
    tls_close(tls);
    return NULL;
}

/* This and the next return false when some bytes were not sent or not received. */
static bool tls_send(struct tls *tls, const char *bytes, size_t size)
{
    ssize_t sent;
    do
        sent = gnutls_record_send(tls->session, bytes, size);
    while (sent == GNUTLS_E_INTERRUPTED);
    return sent >= 0 && (size_t)sent == size;
}

/* Some records have no bytes for us, such as session tickets; GnuTLS then asks to be called again. */
static bool tls_receive(struct tls *tls, char *bytes, size_t size)
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

#else

static struct tls *tls_open(int fd, const char *certificate_path, unsigned patience_ms, char *message,
                            size_t message_size)
{
    (void)fd, (void)certificate_path, (void)patience_ms;
    snprintf(message, message_size, "TLS: this attnd was built without GnuTLS");
    return NULL;
}

static bool tls_send(struct tls *tls, const char *bytes, size_t size)
{
    (void)tls, (void)bytes, (void)size;
    return false;
}

static bool tls_receive(struct tls *tls, char *bytes, size_t size)
{
    (void)tls, (void)bytes, (void)size;
    return false;
}

static void tls_close(struct tls *tls)
{
    (void)tls;
}

#endif

/* ---- the exchange ---- */

/* Sends all bytes. tls NULL: plain HTTP. */
static bool send_all(int fd, struct tls *tls, const char *bytes, size_t size)
{
    return tls != NULL ? tls_send(tls, bytes, size) : send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool receive_all(int fd, struct tls *tls, char *bytes, size_t size)
{
    return tls != NULL ? tls_receive(tls, bytes, size) : recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

/* Sends the request and returns the status of the answer. 0: no answer. */
static int exchange(int fd, struct tls *tls, const char *path)
{
    static const char wanted[] = "HTTP/1.1 ";
    char request[256], reply[sizeof wanted - 1 + 3 + 1] = {0};
    const int length = snprintf(request, sizeof request,
                                "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: attnd-health\r\n"
                                "Connection: close\r\n\r\n",
                                path);
    int status = 0;
    if (length < 0 || (size_t)length >= sizeof request || !send_all(fd, tls, request, (size_t)length) ||
        !receive_all(fd, tls, reply, sizeof reply - 1) || memcmp(reply, wanted, sizeof wanted - 1) != 0 ||
        sscanf(reply + sizeof wanted - 1, "%3d", &status) != 1)
        return 0;
    return status;
}

/* Returns false when there is no answer; message says why. */
static bool ask_on(int fd, const struct health_question *question, int *status, char *message, size_t message_size)
{
    struct tls *tls = NULL;
    if (question->tls_certificate != NULL) {
        const char *wanted = question->takes_any_certificate ? NULL : question->tls_certificate;
        tls = tls_open(fd, wanted, PATIENCE_S * 1000, message, message_size);
        if (tls == NULL)
            return false;
    }
    *status = exchange(fd, tls, question->path);
    tls_close(tls);
    if (*status == 0)
        snprintf(message, message_size, "no answer to GET %s from %s:%s", question->path, reachable(question->host),
                 question->port);
    return *status != 0;
}

bool health_ask(const struct health_question *question, char *message, size_t message_size)
{
    enum { OK = 200 };
    const char *host = reachable(question->host);
    int status = 0;
    const int fd = open_connection(host, question->port, message, message_size);
    if (fd < 0)
        return false;
    const bool is_answered = ask_on(fd, question, &status, message, message_size);
    close(fd);
    if (is_answered)
        snprintf(message, message_size, "GET %s at %s:%s answers %d", question->path, host, question->port, status);
    return status == OK;
}

/* ---- the commands ---- */

static int complain(const char *message)
{
    fprintf(stderr, "attnd: %s\n", message);
    return EXIT_FAILURE;
}

int command_key(const struct config *config)
{
    char token[KEYS_TOKEN_MAX], line[512], message[320];
    if (!keys_make(config->key_name, config->key_rights, config->key_quota, token, line, sizeof line, message,
                   sizeof message))
        return complain(message);
    printf("%s\n", line);
    fprintf(stderr, "The key of %s, which is stored nowhere: %s\n", config->key_name, token);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int command_health(const struct config *config)
{
    char message[320];
    const struct health_question question = {.host = config->listen.host,
                                             .port = config->listen.port,
                                             .path = config->health_path,
                                             .tls_certificate = config->tls_cert,
                                             .takes_any_certificate = config->health_insecure == SWITCH_ON};
    return health_ask(&question, message, sizeof message) ? EXIT_SUCCESS : complain(message);
}
