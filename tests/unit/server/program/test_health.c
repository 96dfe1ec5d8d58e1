/*
 * test_health.c: asking a running server for its health, as HEALTHCHECK does.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check_main.h"
#include "http_stage.h"
#include "program/commands.h"

static bool ask(unsigned port, const char *host, const char *path, char *message, size_t size)
{
    char text[8];
    snprintf(text, sizeof text, "%u", port);
    const struct health_question question = {.host = host, .port = text, .path = path, .tls_certificate = NULL};
    return health_ask(&question, message, size);
}

START_TEST(a_server_is_found_wherever_it_listens)
{
    const char *const hosts[] = {"127.0.0.1", "0.0.0.0", ""};
    struct http_stage stage = http_stage_of(http_stage_echo);
    char message[320];
    http_stage_start(&stage);
    for (size_t i = 0; i < COUNT(hosts); i++) {
        ck_assert_msg(ask(stage.port, hosts[i], "/readyz", message, sizeof message), "\"%s\": %s", hosts[i], message);
        ck_assert_msg(ask(stage.port, hosts[i], "/livez", message, sizeof message), "\"%s\": %s", hosts[i], message);
    }
    http_stage_stop(&stage);
}
END_TEST

START_TEST(a_draining_server_lives_and_is_not_ready)
{
    struct http_stage stage = http_stage_of(http_stage_echo);
    char message[320] = "";
    http_stage_start(&stage);
    http_daemon_begin_drain(stage.server);
    ck_assert(!ask(stage.port, "127.0.0.1", "/readyz", message, sizeof message));
    ck_assert_msg(strstr(message, "answers 503") != NULL, "%s", message);
    ck_assert(ask(stage.port, "127.0.0.1", "/livez", message, sizeof message));
    http_stage_stop(&stage);
}
END_TEST

/* A port that is bound and not listened on refuses connections, and nobody else can take it meanwhile. */
static int bound_socket(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

START_TEST(nobody_there_is_said)
{
    unsigned port;
    char message[320] = "";
    const int fd = bound_socket(&port);
    ck_assert(!ask(port, "127.0.0.1", "/readyz", message, sizeof message));
    ck_assert_msg(strstr(message, "no server answers at 127.0.0.1:") != NULL, "%s", message);
    ck_assert(!ask(port, "no such host", "/readyz", message, sizeof message));
    ck_assert_msg(strstr(message, "is not an address") != NULL, "%s", message);
    close(fd);
}
END_TEST

struct talker {
    int fd;
    const char *words;
};

/* Answers one connection with its words, and closes it. */
static void *talk(void *argument)
{
    const struct talker *talker = argument;
    char request[512];
    const int fd = accept(talker->fd, NULL, NULL);
    (void)!read(fd, request, sizeof request);
    (void)!write(fd, talker->words, strlen(talker->words));
    close(fd);
    return NULL;
}

START_TEST(what_is_no_answer_is_not_taken_for_one)
{
    static const char *const words[] = {"", "HTTP/1.1 2", "220 mail.example ESMTP\r\n", "HTTP/1.1 xyz OK\r\n\r\n"};
    struct talker talker = {.words = words[_i]};
    unsigned port;
    char message[320] = "";
    pthread_t thread;
    talker.fd = bound_socket(&port);
    ck_assert_int_eq(listen(talker.fd, 1), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, talk, &talker), 0);
    ck_assert(!ask(port, "127.0.0.1", "/readyz", message, sizeof message));
    ck_assert_msg(strstr(message, "no answer to GET /readyz") != NULL, "%s", message);
    pthread_join(thread, NULL);
    close(talker.fd);
}
END_TEST

CHECK_MAIN("health")
{
    enum { TALKERS = 4 };
    tcase_add_test(tests, a_server_is_found_wherever_it_listens);
    tcase_add_test(tests, a_draining_server_lives_and_is_not_ready);
    tcase_add_test(tests, nobody_there_is_said);
    tcase_add_loop_test(tests, what_is_no_answer_is_not_taken_for_one, 0, TALKERS);
}
