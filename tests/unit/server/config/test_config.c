/*
 * test_config.c: settings by flag and by variable: which one wins, and the messages of refusals; and lines of the log,
 * which no client can forge.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "check_main.h"
#include "config/command_line.h"

enum { WORDS_MAX = 8 };

/* Reads flags and variables, each a list of words divided by spaces. */
static bool read_words(struct config *config, char *flags, char *variables, char *message, size_t size)
{
    char name[] = "attnd";
    char *argv[WORDS_MAX + 2] = {name}, *environment[WORDS_MAX + 1] = {NULL};
    int argc = 1, count = 0;
    for (char *word = strtok(flags, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    for (char *word = strtok(variables, " "); word != NULL; word = strtok(NULL, " "))
        environment[count++] = word;
    return command_line_read(config, argc, argv, environment, message, size);
}

static struct config check_runs(const char *flags, const char *variables)
{
    static char own_flags[256], own_variables[256];
    struct config config;
    char message[320] = "";
    snprintf(own_flags, sizeof own_flags, "%s", flags);
    snprintf(own_variables, sizeof own_variables, "%s", variables);
    const bool is_read = read_words(&config, own_flags, own_variables, message, sizeof message);
    ck_assert_msg(is_read && config.command == CONFIG_SERVE, "%s %s: %s", flags, variables, message);
    return config;
}

static void check_refused(const char *flags, const char *variables, const char *word)
{
    char own_flags[256], own_variables[256], message[320] = "";
    struct config config;
    snprintf(own_flags, sizeof own_flags, "%s", flags);
    snprintf(own_variables, sizeof own_variables, "%s", variables);
    ck_assert_msg(!read_words(&config, own_flags, own_variables, message, sizeof message), "%s %s was not refused",
                  flags, variables);
    ck_assert_msg(strstr(message, word) != NULL, "no \"%s\" in: %s", word, message);
}

START_TEST(settings_without_flags_are_these)
{
    const struct config config = check_runs("", "");
    ck_assert_str_eq(config.cors_origin, "*");
    ck_assert_uint_eq(config.max_body_bytes, 64 << 20);
    ck_assert_uint_eq(config.max_result_bytes, 256 << 20);
    ck_assert_uint_eq(config.max_memory_bytes, 1 << 30);
    ck_assert_double_eq(config.max_flops, 2e12);
    ck_assert_uint_ge(config.compute_threads, 1);
    ck_assert_int_eq(config.log_format, LOG_TEXT);
    ck_assert_int_eq(config.log_level, LOG_INFO);
    ck_assert_uint_eq(config.unknown_variables, 0);
}
END_TEST

/* The next "--flag, VARIABLE (default VALUE)" of the help; false at its end. */
static bool next_default(FILE *help, char flag[64], char value[64])
{
    char line[256];
    while (fgets(line, sizeof line, help) != NULL)
        if (sscanf(line, "  --%63[a-z-], %*s (default %63[^)\n])", flag, value) == 2)
            return true;
    return false;
}

/*
 * Each flag with its printed default gives the same settings as no flag.
 */
START_TEST(each_flag_takes_the_default_that_the_help_prints)
{
    FILE *help = tmpfile();
    help_write(fileno(help));
    rewind(help);
    char flag[64], value[64], words[160];
    int count = 0;
    for (; next_default(help, flag, value); count++) {
        if (strcmp(value, "none") == 0) /* nothing, which has no text */
            continue;
        snprintf(words, sizeof words, "--%s %s", flag, value);
        const struct config given = check_runs(words, ""), usual = check_runs("", "");
        ck_assert_uint_eq(given.queue, usual.queue);
        ck_assert_uint_eq(given.max_body_bytes, usual.max_body_bytes);
        ck_assert_uint_eq(given.max_result_bytes, usual.max_result_bytes);
        ck_assert_uint_eq(given.compute_threads, usual.compute_threads);
        ck_assert_double_eq(given.max_flops, usual.max_flops);
        ck_assert_str_eq(given.listen.port, usual.listen.port);
    }
    fclose(help);
    ck_assert_int_ge(count, 40);
}
END_TEST

START_TEST(a_flag_wins_over_its_variable_and_that_over_the_default)
{
    ck_assert_uint_eq(check_runs("", "ATTND_QUEUE=5").queue, 5);
    ck_assert_uint_eq(check_runs("--queue 6", "ATTND_QUEUE=5").queue, 6);
    ck_assert_uint_eq(check_runs("--queue=6 --queue 7", "").queue, 7);
    ck_assert_int_eq(check_runs("", "ATTND_LOG_FORMAT=json").log_format, LOG_JSON);
    ck_assert_uint_eq(check_runs("--max-body 3K", "").max_body_bytes, 3072);
    ck_assert_double_eq(check_runs("--max-flops 2.5e9", "").max_flops, 2.5e9);
    ck_assert_str_eq(check_runs("", "ATTND_KERNEL=portable").kernel, "portable");
    ck_assert_uint_eq(check_runs("--compute-threads 3", "").compute_threads, 3);
}
END_TEST

START_TEST(addresses_are_cut_at_the_right_colon)
{
    struct config config = check_runs("--listen [::1]:8080", "");
    ck_assert_str_eq(config.listen.host, "::1");
    ck_assert_str_eq(config.listen.port, "8080");
    config = check_runs("--listen :0", "");
    ck_assert_str_eq(config.listen.host, "");
    ck_assert_str_eq(config.listen.port, "0");
    static const char *const wrong[] = {"8080",    "::1:8080", "localhost:", "localhost:http",
                                        "h:65536", "[::1]",    "a/b:1"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--listen %s", wrong[i]);
        check_refused(flag, "", "127.0.0.1:8080");
    }
}
END_TEST

START_TEST(wrong_values_are_refused_with_the_right_ones)
{
    check_refused("--queue -1", "", "whole number from 0 to 100000");
    check_refused("--io-threads 0", "", "from 1 to 64");
    check_refused("--io-threads 65", "", "--io-threads");
    check_refused("--max-body 64X", "", "K, M, G or T");
    check_refused("--max-body 99999999999999999999", "", "--max-body");
    check_refused("--max-body 20000000T", "", "--max-body");
    check_refused("--max-flops nan", "", "number from");
    check_refused("--log-format xml", "", "text or json");
    check_refused("--log-level loud", "", "debug, info, warn, error or off");
    check_refused("--half-close maybe", "", "cancel or serve");
    check_refused("", "ATTND_QUEUE=many", "ATTND_QUEUE");
    check_refused("", "ATTND_QUEUE=", "ATTND_QUEUE");
    check_refused("--queue", "", "needs a value");
    check_refused("--max-body 1G --max-memory 1G", "", "smaller than max-memory");
    check_refused("--tls-cert a.pem", "", "go together");
    check_refused("--tls-key a.pem", "", "go together");
    check_refused("--open=yes", "", "on or off");
    check_refused("", "ATTND_OPEN=", "on or off");
}
END_TEST

START_TEST(a_switch_needs_no_value_and_a_path_may_be_none)
{
    struct config config = check_runs("--open --queue 3", "");
    ck_assert_int_eq(config.open, SWITCH_ON);
    ck_assert_uint_eq(config.queue, 3);
    ck_assert_int_eq(check_runs("--open=0", "ATTND_OPEN=1").open, SWITCH_OFF);
    ck_assert_int_eq(check_runs("--open off", "ATTND_OPEN=on").open, SWITCH_OFF);
    ck_assert_int_eq(check_runs("", "ATTND_OPEN=1").open, SWITCH_ON);
    config = check_runs("--log-file a.log", "ATTND_KEYS=none");
    ck_assert_str_eq(config.log_file, "a.log");
    ck_assert_ptr_null(config.keys);
    ck_assert_ptr_null(config.tls_cert);
    ck_assert_ptr_null(check_runs("", "ATTND_KEYS=").keys);
    ck_assert_ptr_null(check_runs("--layers none", "ATTND_LAYERS=/srv").layers_directory);
    ck_assert_str_eq(check_runs("--cors-origin none", "").cors_origin, "");
    ck_assert_int_eq(config.open, SWITCH_OFF);
}
END_TEST

START_TEST(unknown_flags_are_refused_and_unknown_variables_remembered)
{
    check_refused("--max-bdy 1M", "", "did you mean --max-body?");
    check_refused("--nothing-like-it 1", "", "--help");
    check_refused("--port 8081", "", "--port is not a setting; did you mean --listen?");
    check_refused("--verison", "", "--verison is not a setting; did you mean --version?");
    check_refused("help", "", "help is not a setting; did you mean --help?");
    check_refused("--colours", "", "--colours is not a setting; --help lists them all");
    check_refused("stray", "", "stray");
    check_refused("-queue 3", "", "did you mean --queue?");
    const struct config config = check_runs("", "ATTND_QEUE=5 PATH=x ATTND_QUEUE=5");
    ck_assert_uint_eq(config.unknown_variables, 1);
    ck_assert_int_eq(strncmp(config.unknown_variable[0], "ATTND_QEUE", 10), 0);
}
END_TEST

START_TEST(help_is_given_even_beside_wrong_values)
{
    char flags[] = "--queue x --help", version[] = "--version", none[] = "", message[64];
    struct config config;
    ck_assert(read_words(&config, flags, none, message, sizeof message));
    ck_assert_int_eq(config.command, CONFIG_HELP);
    ck_assert(read_words(&config, version, none, message, sizeof message));
    ck_assert_int_eq(config.command, CONFIG_VERSION);
}
END_TEST

/* What write puts into a pipe, as one text. */
static char *captured(void (*write)(int fd, const void *argument), const void *argument)
{
    static char text[32768];
    int pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    write(pipe_fds[1], argument);
    close(pipe_fds[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0; length += (size_t)(got > 0 ? got : 0))
        got = read(pipe_fds[0], text + length, sizeof text - 1 - length);
    close(pipe_fds[0]);
    text[length] = '\0';
    return text;
}

static void write_help(int fd, const void *argument)
{
    (void)argument;
    help_write(fd);
}

START_TEST(help_names_every_setting_with_its_variable)
{
    const char *help = captured(write_help, NULL);
    static const char *const words[] = {"--listen, ATTND_LISTEN",
                                        "--compute-threads, ATTND_COMPUTE_THREADS",
                                        "--max-body, ATTND_MAX_BODY",
                                        "(default 64M)",
                                        "--cors-origin",
                                        "--kernel, ATTND_KERNEL",
                                        "--drain-timeout",
                                        "--help"};
    for (size_t i = 0; i < COUNT(words); i++)
        ck_assert_msg(strstr(help, words[i]) != NULL, "no %s in the help", words[i]);
}
END_TEST

struct log_case {
    log_format format;
    const char *value;
};

static void write_line(int fd, const void *argument)
{
    const struct log_case *given = argument;
    const struct log log = {.fd = fd, .format = given->format, .level = LOG_INFO};
    struct log_line line;
    log_begin(&line, &log, LOG_INFO, "request");
    log_text(&line, "path", given->value);
    log_count(&line, "status", 200);
    log_ms(&line, "total_ms", 1.5);
    log_end(&line);
}

START_TEST(health_asks_for_readiness_unless_told_otherwise)
{
    static const struct {
        const char *flags, *path;
    } cases[] = {{"health", "/readyz"}, {"health ready", "/readyz"}, {"health live --listen :9", "/livez"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char flags[64], variables[] = "ATTND_LISTEN=0.0.0.0:9", message[320] = "";
        struct config config;
        snprintf(flags, sizeof flags, "%s", cases[i].flags);
        ck_assert(read_words(&config, flags, variables, message, sizeof message));
        ck_assert_int_eq(config.command, CONFIG_HEALTH);
        ck_assert_str_eq(config.health_path, cases[i].path);
        ck_assert_str_eq(config.listen.port, "9");
    }
    check_refused("health soon", "", "soon");
    char insecure[] = "health live --insecure", no_variables[] = "", message[320] = "";
    struct config config;
    ck_assert_msg(read_words(&config, insecure, no_variables, message, sizeof message), "%s", message);
    ck_assert_int_eq(config.health_insecure, SWITCH_ON);
    check_refused("--insecure", "", "--insecure is not a setting");
    check_refused("--listen :9 health", "", "health");
}
END_TEST

START_TEST(a_key_has_a_name_and_perhaps_rights_and_a_quota)
{
    char words[] = "key alice compute", variables[] = "ATTND_QUEUE=many", message[320] = "";
    struct config config;
    ck_assert(read_words(&config, words, variables, message, sizeof message)); /* settings do not matter here */
    ck_assert_int_eq(config.command, CONFIG_KEY);
    ck_assert_str_eq(config.key_name, "alice");
    ck_assert_str_eq(config.key_rights, "compute");
    ck_assert_ptr_null(config.key_quota);
    check_refused("key", "", "usage: attnd key NAME [RIGHTS [QUOTA]]");
    check_refused("key a b c d", "", "usage: attnd key NAME");
}
END_TEST

START_TEST(import_needs_a_checkpoint_and_a_directory)
{
    char words[] = "import model --into layers --prefix bert", variables[] = "ATTND_CHECKPOINT_PREFIX=other",
         message[320] = "";
    struct config config;
    ck_assert(read_words(&config, words, variables, message, sizeof message));
    ck_assert_int_eq(config.command, CONFIG_IMPORT);
    ck_assert_str_eq(config.checkpoint, "model");
    ck_assert_str_eq(config.layers_directory, "layers");
    ck_assert_str_eq(config.checkpoint_prefix, "bert");
    ck_assert_ptr_null(config.checkpoint_mapping);
    check_refused("import", "", "usage: attnd import CHECKPOINT --into DIR");
    check_refused("import model", "", "--into DIR");
    check_refused("--into layers", "", "--into is not a setting");
}
END_TEST

START_TEST(a_setting_that_went_names_what_follows_it)
{
    check_refused("--checkpoint model", "", "--model NAME=DIR");
    check_refused("", "ATTND_CHECKPOINT=model", "--model NAME=DIR");
    check_refused("", "ATTND_CHECKPOINT_MAPPING=file", "--model NAME=DIR");
    check_refused("--header-timeout 5", "", "--header-timeout is no longer a setting: it is --idle-timeout");
    check_refused("", "ATTND_RECEIVE_TIMEOUT=5", "ATTND_RECEIVE_TIMEOUT is no longer a setting: it is half of");
    check_refused("health --health-insecure", "", "`attnd health` takes --insecure");
    ck_assert_ptr_null(strstr(captured(write_help, NULL), "--checkpoint"));
}
END_TEST

START_TEST(two_timeouts_follow_from_others)
{
    static const struct {
        const char *words;
        uint64_t header_s, receive_s;
    } cases[] = {
        {"--deadline 60", 20, 300},
        {"--idle-timeout 5 --request-timeout 100", 5, 50},
        {"--idle-timeout 3600 --request-timeout 1", 20, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct config config = check_runs(cases[i].words, "");
        ck_assert_uint_eq(config.header_timeout_s, cases[i].header_s);
        ck_assert_uint_eq(config.receive_timeout_s, cases[i].receive_s);
    }
}
END_TEST

START_TEST(log_lines_are_text_or_json)
{
    const char *line = captured(write_line, &(struct log_case){LOG_TEXT, "/livez"});
    ck_assert_str_eq(line + 24, " info request path=/livez status=200 total_ms=1.500\n");
    line = captured(write_line, &(struct log_case){LOG_JSON, "/livez"});
    ck_assert_str_eq(strstr(line, "\"level\""), "\"level\":\"info\",\"message\":\"request\",\"path\":\"/livez\","
                                                "\"status\":200,\"total_ms\":1.500}\n");
}
END_TEST

START_TEST(no_value_can_break_out_of_its_line)
{
    static const char evil[] = "/a\n2026 info \"fake\" \\ \x1b[2J\x7f\xff";
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        const char *line = captured(write_line, &(struct log_case){(log_format)format, evil});
        ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
        ck_assert_ptr_nonnull(strstr(line, "\"/a\\u000a2026 info \\\"fake\\\" \\\\ \\u001b[2J\\u007f\\u00ff\""));
    }
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut_and_stays_whole)
{
    char *value = malloc(LOG_LINE_MAX * 2);
    memset(value, '\n', LOG_LINE_MAX * 2 - 1);
    for (size_t length = LOG_LINE_MAX / 6 - 40; length < LOG_LINE_MAX; length += 1) {
        value[length] = '\0';
        const char *line = captured(write_line, &(struct log_case){LOG_JSON, value});
        ck_assert_uint_le(strlen(line), LOG_LINE_MAX);
        ck_assert_str_eq(line + strlen(line) - 2, "}\n");
        ck_assert_ptr_null(strstr(line, "\\\"}"));
        value[length] = '\n';
    }
    free(value);
}
END_TEST

static void write_below(int fd, const void *argument)
{
    const struct log log = {.fd = fd, .format = LOG_TEXT, .level = LOG_WARN};
    (void)argument;
    log_say(&log, LOG_INFO, "quiet");
    log_say(&log, LOG_ERROR, "loud");
}

START_TEST(lines_below_the_level_are_not_written)
{
    const char *text = captured(write_below, NULL);
    ck_assert_ptr_null(strstr(text, "quiet"));
    ck_assert_ptr_nonnull(strstr(text, " error loud\n"));
}
END_TEST

CHECK_MAIN("config")
{
    tcase_add_test(tests, settings_without_flags_are_these);
    tcase_add_test(tests, each_flag_takes_the_default_that_the_help_prints);
    tcase_add_test(tests, a_flag_wins_over_its_variable_and_that_over_the_default);
    tcase_add_test(tests, addresses_are_cut_at_the_right_colon);
    tcase_add_test(tests, wrong_values_are_refused_with_the_right_ones);
    tcase_add_test(tests, a_switch_needs_no_value_and_a_path_may_be_none);
    tcase_add_test(tests, unknown_flags_are_refused_and_unknown_variables_remembered);
    tcase_add_test(tests, help_is_given_even_beside_wrong_values);
    tcase_add_test(tests, help_names_every_setting_with_its_variable);
    tcase_add_test(tests, health_asks_for_readiness_unless_told_otherwise);
    tcase_add_test(tests, a_key_has_a_name_and_perhaps_rights_and_a_quota);
    tcase_add_test(tests, import_needs_a_checkpoint_and_a_directory);
    tcase_add_test(tests, a_setting_that_went_names_what_follows_it);
    tcase_add_test(tests, two_timeouts_follow_from_others);
    tcase_add_test(tests, log_lines_are_text_or_json);
    tcase_add_test(tests, no_value_can_break_out_of_its_line);
    tcase_add_test(tests, a_line_that_is_too_long_is_cut_and_stays_whole);
    tcase_add_test(tests, lines_below_the_level_are_not_written);
}
