/*
 * config.c: the settings of attnd: one table, read from the command line and the environment.
 */
#include "base/config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/machine/cpus.h"
#include "base/machine/memory.h"
#include "base/nearest.h"
#include "base/text.h"

typedef enum {
    COUNT,
    THREADS,
    BYTES,
    MEMORY,
    REAL,
    TEXT,
    PATH,
    LISTEN,
    HALF_CLOSE,
    FORMAT,
    LEVEL,
    SWITCH,
    VERIFY,
    ROOM,
    ORIGINS,
    NAMES
} setting_type;

struct setting {
    const char *flag; /* without the dashes */
    setting_type type;
    size_t at;         /* of the member in struct config */
    const char *usual; /* the default, as it would be given */
    double min, max;
    const char *help;
};

#define AT(member) offsetof(struct config, member)
#define KIB        1024.0
#define MIB        (1024 * KIB)
#define GIB        (1024 * MIB)

enum { COMPUTE_THREADS_MAX = 128 };

/* The BLAS does not survive some 200 threads that call it at once, hence the most compute threads. */
static const struct setting settings[] = {
    {"listen", LISTEN, AT(listen_host), "127.0.0.1:8080", 0, 0,
     "address:port to serve on; [::1]:8080 for IPv6, :8080 for every address; port 0 takes a free one, and the first "
     "log line says which"},
    {"io-threads", COUNT, AT(io_threads), "2", 1, 64, "threads that receive and send"},
    {"compute-threads", THREADS, AT(compute_threads), "auto", 1, COMPUTE_THREADS_MAX,
     "threads that parse, compute and format; auto = the processors that this process may use, quotas included, "
     "and no more than fit into a quarter of --memory"},
    {"queue", COUNT, AT(queue), "64", 0, 100000,
     "requests that may wait for a compute thread; one more is answered 503 at once"},
    {"connections", COUNT, AT(connections), "1000", 1, 100000,
     "connections at once; one more takes the place of the one that has been idle for longest, or is closed when all "
     "are being served; fewer when they would take more than an eighth of --memory, at 96 KiB each"},
    {"connections-per-address", COUNT, AT(connections_per_address), "0", 0, 100000,
     "connections at once from one address; 0 = as many as there are, as behind a proxy"},
    {"max-body", BYTES, AT(max_body_bytes), "64M", 1, 64 * GIB, "largest request body"},
    {"max-result", BYTES, AT(max_result_bytes), "256M", KIB, 64 * GIB, "largest response body"},
    {"max-memory", BYTES, AT(max_memory_bytes), "1G", MIB, 1024 * GIB,
     "memory that one request may take, its body and its result included"},
    {"memory", MEMORY, AT(memory_bytes), "auto", MIB, 1024 * 1024 * GIB,
     "memory of the whole process: threads, connections, kept layers, caches and prepared weights have their parts; "
     "all requests together have the rest, unsent answers included, and one more is answered 503; auto = 15/16 of "
     "what this process may use"},
    {"max-flops", REAL, AT(max_flops), "2e12", 1, 1e30,
     "floating-point operations that one request may take, with softmax and masks at their cost in time"},
    {"idle-timeout", COUNT, AT(idle_timeout_s), "60", 1, 86400,
     "seconds of silence after which a connection is closed"},
    {"header-timeout", COUNT, AT(header_timeout_s), "20", 1, 86400,
     "seconds that the header of a request may take to arrive, on a new connection from its start"},
    {"receive-timeout", COUNT, AT(receive_timeout_s), "300", 1, 86400,
     "seconds that a request may take to arrive, from its first line to the end of its body"},
    {"deadline", COUNT, AT(deadline_s), "60", 1, 86400,
     "seconds from the end of a request's body to its answer; after them it is answered 504 and the work stops"},
    {"request-timeout", COUNT, AT(request_timeout_s), "600", 1, 86400,
     "seconds from the first line of a request to the last byte of its answer; after them the connection is cut"},
    {"drain-delay", COUNT, AT(drain_delay_s), "1", 0, 3600,
     "seconds after SIGTERM in which new connections are still served while /readyz says 503, so that a load balancer "
     "can take notice"},
    {"drain-timeout", COUNT, AT(drain_timeout_s), "30", 0, 3600,
     "seconds after that in which running requests may finish"},
    {"half-close", HALF_CLOSE, AT(half_close), "cancel", 0, 0,
     "cancel or serve the request of a client that has closed its sending half: one that left looks the same"},
    {"layers", TEXT, AT(layers_directory), "none", 0, 0,
     "directory that keeps layers, a safetensors file each; none = they live in memory and end with the process"},
    {"layers-readonly", SWITCH, AT(layers_readonly), "off", 0, 0, "layers can be used and read, not put or deleted"},
    {"layers-verify", VERIFY, AT(layers_verify), "lazily", 0, 0,
     "lazily or at-start: when the files of layers are looked into; those that are no layers are passed over"},
    {"layers-max", COUNT, AT(layers_max), "10000", 0, 10000000, "layers that may be kept; one more is answered 507"},
    {"layers-bytes", ROOM, AT(layers_bytes), "auto", 0, 1024 * 1024 * GIB,
     "bytes that all kept layers together may have; auto = an eighth of --memory, and no limit but the disk's own with "
     "a directory"},
    {"layers-versions", COUNT, AT(layers_versions), "2", 0, 16,
     "replaced versions of a layer that can still be asked for by their digest"},
    {"layers-prepared", ROOM, AT(layers_prepared_bytes), "auto", 0, 1024 * 1024 * GIB,
     "bytes of weights that stay as computing wants them, widened from 16 bits and packed, of the layers that were "
     "used last; 0 = none, each request does it; auto = a sixteenth of --memory"},
    {"cache-bytes", ROOM, AT(cache_bytes), "auto", 0, 1024 * 1024 * GIB,
     "bytes that all caches of keys and values (options.cache) may take, and one key half of them; auto = an eighth of "
     "--memory"},
    {"cache-max", COUNT, AT(cache_max), "1000", 0, 100000,
     "caches at once, of which one key holds at most half; one more is answered 507"},
    {"cache-idle", COUNT, AT(cache_idle_s), "600", 1, 31536000,
     "seconds after which a cache that no request used is evicted"},
    {"checkpoint", TEXT, AT(checkpoint), "none", 0, 0,
     "directory of a model, with config.json and model.safetensors or the index of several files: its attention "
     "modules are layers that requests cannot change, in memory"},
    {"checkpoint-prefix", TEXT, AT(checkpoint_prefix), "none", 0, 0,
     "what the names of these layers begin with, with a dot behind it"},
    {"checkpoint-mapping", TEXT, AT(checkpoint_mapping), "none", 0, 0,
     "file that tells which tensors are attention, for a model that is none of the known ones"},
    {"cors-origin", ORIGINS, AT(cors_origin), "*", 0, 0,
     "origins whose pages may ask, in a browser: *, none, or a list such as https://a.example,*; * opens the paths "
     "that compute and keep nothing, an origin that is named reaches all paths; never with credentials"},
    {"host-names", NAMES, AT(host_names), "none", 0, 0,
     "names that the field Host may have, such as attnd.example,proxy.example, beside IP addresses and localhost; "
     "without keys it is checked on the loopback, and on any address when a name is given here"},
    {"keys", PATH, AT(keys), "none", 0, 0,
     "file of the API keys that requests must bring, read again on SIGHUP; `attnd key NAME` makes a line for it; "
     "none = anybody may ask"},
    {"open", SWITCH, AT(open), "off", 0, 0,
     "listen beyond the loopback although there are no keys, because something else guards the way here"},
    {"tls-cert", PATH, AT(tls_cert), "none", 0, 0,
     "file of the certificate chain in PEM, to serve https; read again on SIGHUP"},
    {"tls-key", PATH, AT(tls_key), "none", 0, 0, "file of its private key in PEM"},
    {"health-insecure", SWITCH, AT(health_insecure), "off", 0, 0,
     "`attnd health` takes any certificate; off = the server must show the one in tls-cert"},
    {"log-file", PATH, AT(log_file), "none", 0, 0, "file to log to, opened again on SIGHUP; none = standard error"},
    {"log-format", FORMAT, AT(log_format), "text", 0, 0, "text or json"},
    {"log-level", LEVEL, AT(log_level), "info", 0, 0, "debug, info, warn, error or off"},
    {"kernel", TEXT, AT(kernel), "auto", 0, 0,
     "instruction set to compute with; auto = the best this processor has; an unknown name lists them"},
    {"fonts", TEXT, AT(fonts), "auto", 0, 0,
     "font files for the labels of pictures, separated by commas; a character is looked for in each in turn; auto = "
     "DejaVu Sans and WenQuanYi Micro Hei where they are installed"},
};

enum { SETTINGS = ARRAY_LENGTH(settings), VARIABLE_MAX = 64 };

static const char variable_prefix[] = "ATTND_";

static const char *variable_of(const struct setting *setting, char *name)
{
    size_t length = (size_t)snprintf(name, VARIABLE_MAX, "%s%s", variable_prefix, setting->flag);
    for (size_t i = 0; i < length; i++)
        name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    return name;
}

static const struct setting *setting_by_flag(struct text_span flag)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (text_equal(flag, settings[i].flag))
            return &settings[i];
    return NULL;
}

static const struct setting *setting_by_variable(struct text_span variable)
{
    char name[VARIABLE_MAX];
    for (size_t i = 0; i < SETTINGS; i++)
        if (text_equal(variable, variable_of(&settings[i], name)))
            return &settings[i];
    return NULL;
}

static bool in_range(const struct setting *setting, double value)
{
    return value >= setting->min && value <= setting->max;
}

static bool read_count(const struct setting *setting, const char *text, void *member)
{
    uint64_t value = 0;
    const bool is_read = setting->type != COUNT && setting->type != THREADS ? text_read_bytes(text, &value)
                                                                            : text_read_count(text, &value);
    if (!is_read || !in_range(setting, (double)value))
        return false;
    memcpy(member, &value, sizeof value);
    return true;
}

/* "auto" is settled when all settings are read. */
static bool read_or_auto(const struct setting *setting, const char *text, void *member)
{
    if (strcmp(text, "auto") != 0)
        return read_count(setting, text, member);
    const uint64_t later = CONFIG_AUTO;
    memcpy(member, &later, sizeof later);
    return true;
}

static bool read_real(const struct setting *setting, const char *text, void *member)
{
    double value = 0;
    if (!text_read_real(text, &value) || !in_range(setting, value))
        return false;
    memcpy(member, &value, sizeof value);
    return true;
}

/* Cuts "[::1]:8080" at its last colon; brackets tell the colons of the address from that of the port. */
static bool read_listen(struct config *config, const char *text)
{
    uint64_t port = 0;
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !text_read_count(colon + 1, &port) || port > 65535)
        return false;
    struct text_span host = {text, (size_t)(colon - text)};
    const bool is_bracketed = host.length >= 2 && host.at[0] == '[' && host.at[host.length - 1] == ']';
    if (is_bracketed)
        host = (struct text_span){host.at + 1, host.length - 2};
    if (host.length >= sizeof config->listen_host || strcspn(host.at, is_bracketed ? "[]/ " : "[]:/ ") < host.length)
        return false;
    snprintf(config->listen_host, sizeof config->listen_host, "%.*s", (int)host.length, host.at);
    snprintf(config->listen_port, sizeof config->listen_port, "%u", (unsigned)port);
    return true;
}

/* The place of text in a list of words, stored as an int: what an enum is here. */
static bool read_word(const char *const *words, const char *text, void *member)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0) {
            memcpy(member, &i, sizeof i);
            return true;
        }
    return false;
}

static const char *const half_close_words[] = {"cancel", "serve", NULL};
static const char *const switch_words[] = {"off", "on", NULL}, *const switch_digits[] = {"0", "1", NULL};
static const char *const verify_words[] = {"lazily", "at-start", NULL};
static const char *const format_words[] = {"text", "json", NULL};
static const char *const level_words[] = {"debug", "info", "warn", "error", "off", NULL};

/* "scheme://host[:port]", with nothing behind it, as browsers write an origin; or the star for all of them. */
static bool is_origin(struct text_span text)
{
    static const char mark[] = "://";
    if (text_equal(text, "*"))
        return true;
    const char *at = memmem(text.at, text.length, mark, sizeof mark - 1);
    if (at == NULL || at == text.at)
        return false;
    const char *host = at + sizeof mark - 1, *end = text.at + text.length;
    for (const char *c = host; c < end; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr("/?#@", *c) != NULL)
            return false;
    return host < end;
}

/* The name of a host alone. */
static bool is_host_name(struct text_span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!isalnum((unsigned char)text.at[i]) && strchr("-._", text.at[i]) == NULL)
            return false;
    return !text_equal(text, "none");
}

/* "none", or a list of at least one. */
static bool read_list(const char *text, bool (*is_right)(struct text_span), void *member)
{
    struct text_span rest = text_span_of(text), element;
    const bool is_none = strcmp(text, "none") == 0;
    size_t count = 0;
    for (; !is_none && text_next(&rest, ',', &element); count++)
        if (!is_right(element))
            return false;
    memcpy(member, &text, sizeof text);
    return is_none || count > 0;
}

static bool read_value(struct config *config, const struct setting *setting, const char *text)
{
    void *member = (char *)config + setting->at;
    switch (setting->type) {
    case COUNT:
    case BYTES:
        return read_count(setting, text, member);
    case MEMORY:
    case THREADS:
    case ROOM:
        return read_or_auto(setting, text, member);
    case REAL:
        return read_real(setting, text, member);
    case LISTEN:
        return read_listen(config, text);
    case HALF_CLOSE:
        return read_word(half_close_words, text, member);
    case SWITCH:
        return read_word(switch_words, text, member) || read_word(switch_digits, text, member);
    case VERIFY:
        return read_word(verify_words, text, member);
    case ORIGINS:
        return read_list(text, is_origin, member);
    case NAMES:
        return read_list(text, is_host_name, member);
    case FORMAT:
        return read_word(format_words, text, member);
    case LEVEL:
        return read_word(level_words, text, member);
    case TEXT:
        memcpy(member, &text, sizeof text);
        return *text != '\0';
    case PATH:
        text = strcmp(text, "none") == 0 ? "" : text;
        memcpy(member, &text, sizeof text);
        return true;
    }
    return false;
}

/* What a right value looks like: "a whole number from 1 to 64". */
static void describe(const struct setting *setting, char *text, size_t size)
{
    char min[32], max[32];
    switch (setting->type) {
    case COUNT:
    case THREADS:
        snprintf(text, size, "%sa whole number from %.0f to %.0f", setting->type == THREADS ? "auto, or " : "",
                 setting->min, setting->max);
        return;
    case BYTES:
    case MEMORY:
    case ROOM:
        snprintf(text, size, "%sbytes from %s to %s, with K, M, G or T for powers of 1024",
                 setting->type != BYTES ? "auto, or " : "", text_write_bytes(min, sizeof min, (uint64_t)setting->min),
                 text_write_bytes(max, sizeof max, (uint64_t)setting->max));
        return;
    case REAL:
        snprintf(text, size, "a number from %g to %g", setting->min, setting->max);
        return;
    case LISTEN:
        snprintf(text, size, "address:port, such as 127.0.0.1:8080, [::1]:8080 or :0");
        return;
    case HALF_CLOSE:
        snprintf(text, size, "cancel or serve");
        return;
    case SWITCH:
        snprintf(text, size, "on or off");
        return;
    case VERIFY:
        snprintf(text, size, "lazily or at-start");
        return;
    case FORMAT:
        snprintf(text, size, "text or json");
        return;
    case LEVEL:
        snprintf(text, size, "debug, info, warn, error or off");
        return;
    case TEXT:
        snprintf(text, size, "not empty");
        return;
    case PATH:
        snprintf(text, size, "none or a path");
        return;
    case ORIGINS:
        snprintf(text, size,
                 "none, *, or origins such as https://a.example,https://b.example:8443; null cannot be named");
        return;
    case NAMES:
        snprintf(text, size, "none, or names such as attnd.example,proxy.example");
        return;
    }
}

struct refusal {
    char *message;
    size_t size;
};

/* source is the flag or the variable as the user knows it. */
static bool set(struct config *config, const struct setting *setting, const char *source, const char *value,
                struct refusal refusal)
{
    if (read_value(config, setting, value))
        return true;
    char right[128];
    describe(setting, right, sizeof right);
    snprintf(refusal.message, refusal.size, "%s: \"%s\" is not possible; expected %s", source, value, right);
    return false;
}

static bool set_defaults(struct config *config, struct refusal refusal)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (!set(config, &settings[i], settings[i].flag, settings[i].usual, refusal))
            return false;
    return true;
}

static bool set_by_variable(struct config *config, const char *entry, struct refusal refusal)
{
    const size_t length = strcspn(entry, "=");
    const struct setting *setting = setting_by_variable((struct text_span){entry, length});
    char name[VARIABLE_MAX];
    if (setting != NULL)
        return set(config, setting, variable_of(setting, name), entry[length] == '=' ? entry + length + 1 : "",
                   refusal);
    if (config->unknown_variables < CONFIG_UNKNOWN_MAX)
        config->unknown_variable[config->unknown_variables++] = entry;
    return true;
}

static bool set_by_environment(struct config *config, char *const *environment, struct refusal refusal)
{
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, variable_prefix, strlen(variable_prefix)) == 0 &&
            !set_by_variable(config, *environment, refusal))
            return false;
    return true;
}

static const char *nearest_flag(const char *flag)
{
    const char *nearest = NULL;
    const size_t length = strlen(flag);
    size_t least = length < 8 ? 3 : 4; /* further away it is no slip of the pen */
    for (size_t i = 0; i < SETTINGS; i++) {
        const size_t distance = nearest_distance(flag, settings[i].flag);
        if (distance < least) {
            least = distance;
            nearest = settings[i].flag;
        }
    }
    return nearest;
}

static bool refuse_flag(const char *argument, size_t length, struct refusal refusal)
{
    char flag[VARIABLE_MAX];
    snprintf(flag, sizeof flag, "%.*s", (int)length, argument);
    const char *nearest = nearest_flag(flag + strspn(flag, "-"));
    if (nearest != NULL)
        snprintf(refusal.message, refusal.size, "%s is not a setting; did you mean --%s?", flag, nearest);
    else
        snprintf(refusal.message, refusal.size, "%s is not a setting; --help lists them all", flag);
    return false;
}

/* Flags of the command import have shorter names, which mean nothing otherwise. */
static struct text_span whole_flag(const struct config *config, struct text_span flag)
{
    static const struct text_pair names[] = {
        {"into", "layers"}, {"prefix", "checkpoint-prefix"}, {"mapping", "checkpoint-mapping"}};
    for (size_t i = 0; config->is_import && i < ARRAY_LENGTH(names); i++)
        if (text_equal(flag, names[i].name))
            return text_span_of(names[i].value);
    return flag;
}

/* One flag at argv[*i], as --flag value or --flag=value; *i moves over the value. */
static bool set_by_flag(struct config *config, int argc, char *const *argv, int *i, struct refusal refusal)
{
    const char *argument = argv[*i];
    const size_t length = strcspn(argument, "=");
    const struct setting *setting = NULL;
    if (strncmp(argument, "--", 2) == 0)
        setting = setting_by_flag(whole_flag(config, (struct text_span){argument + 2, length - 2}));
    if (setting == NULL)
        return refuse_flag(argument, length, refusal);
    char source[VARIABLE_MAX];
    snprintf(source, sizeof source, "--%s", setting->flag);
    if (argument[length] == '=')
        return set(config, setting, source, argument + length + 1, refusal);
    int position;
    const bool has_word = *i + 1 < argc && (read_word(switch_words, argv[*i + 1], &position) ||
                                            read_word(switch_digits, argv[*i + 1], &position));
    if (setting->type == SWITCH && !has_word)
        return set(config, setting, source, "on", refusal);
    if (*i + 1 < argc)
        return set(config, setting, source, argv[++*i], refusal);
    snprintf(refusal.message, refusal.size, "%s needs a value", source);
    return false;
}

/* --help and --version win over all else, so that a wrong variable does not hide the help against it. */
static config_outcome asks_for(int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return CONFIG_HELP;
        if (strcmp(argv[i], "--version") == 0)
            return CONFIG_VERSION;
    }
    return CONFIG_RUN;
}

static bool fits_together(const struct config *config, struct refusal refusal)
{
    /* Health needs no private key. */
    if (config->probe_path == NULL && (*config->tls_cert != '\0') != (*config->tls_key != '\0')) {
        snprintf(refusal.message, refusal.size, "tls-cert and tls-key go together: one is given, the other is not");
        return false;
    }
    if (config->max_body_bytes < config->max_memory_bytes)
        return true;
    snprintf(refusal.message, refusal.size,
             "max-body (%llu bytes) must be smaller than max-memory (%llu bytes), which holds the body and all else",
             (unsigned long long)config->max_body_bytes, (unsigned long long)config->max_memory_bytes);
    return false;
}

/*
 * `import CHECKPOINT` or `health [ready|live]` at the start of the command line; the number of words that it takes, 0
 * without either.
 */
static int read_command(struct config *config, int argc, char *const *argv)
{
    if (argc > 2 && strcmp(argv[1], "import") == 0 && argv[2][0] != '-') {
        config->is_import = true;
        config->checkpoint = argv[2];
        return 2;
    }
    if (argc < 2 || strcmp(argv[1], "health") != 0)
        return 0;
    const bool is_live = argc > 2 && strcmp(argv[2], "live") == 0;
    config->probe_path = is_live ? "/livez" : "/readyz";
    return is_live || (argc > 2 && strcmp(argv[2], "ready") == 0) ? 2 : 1;
}

static uint64_t fewer(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Layers in a directory are read from its files, which the system may drop from memory and read again. */
static bool keeps_layers_in_memory(const struct config *config)
{
    return config->layers_directory == NULL || config->checkpoint != NULL;
}

/* What is "auto" becomes a number, and what does not fit into the memory becomes smaller; false when nothing helps. */
static bool settle_memory(struct config *config, struct refusal refusal)
{
    if (config->memory_bytes == CONFIG_AUTO)
        config->memory_bytes = memory_auto_bytes();
    if (config->compute_threads == CONFIG_AUTO)
        config->compute_threads =
            fewer(fewer(cpus_available(), COMPUTE_THREADS_MAX), memory_compute_threads(config->memory_bytes));
    struct memory_division *memory = &config->memory;
    *memory = (struct memory_division){.total = config->memory_bytes,
                                       .io_threads = config->io_threads,
                                       .compute_threads = config->compute_threads,
                                       .connections = config->connections,
                                       .layers_bytes = keeps_layers_in_memory(config) ? config->layers_bytes : 0,
                                       .caches_bytes = config->cache_bytes,
                                       .prepared_bytes = config->layers_prepared_bytes};
    if (!memory_divide(memory, refusal.message, refusal.size))
        return false;
    if (keeps_layers_in_memory(config))
        config->layers_bytes = memory->layers_bytes;
    config->cache_bytes = memory->caches_bytes;
    config->layers_prepared_bytes = memory->prepared_bytes;
    config->max_memory_bytes = fewer(config->max_memory_bytes, memory->largest_request_bytes);
    config->max_body_bytes = fewer(config->max_body_bytes, config->max_memory_bytes / 4 * 3);
    return true;
}

config_outcome config_read(struct config *config, int argc, char *const *argv, char *const *environment, char *message,
                           size_t message_size)
{
    const struct refusal refusal = {message, message_size};
    const config_outcome asked = asks_for(argc, argv);
    if (asked != CONFIG_RUN)
        return asked;
    memset(config, 0, sizeof *config);
    if (!set_defaults(config, refusal) || !set_by_environment(config, environment, refusal))
        return CONFIG_REFUSED;
    const int command_words = read_command(config, argc, argv);
    for (int i = 1 + command_words; i < argc; i++)
        if (!set_by_flag(config, argc, argv, &i, refusal))
            return CONFIG_REFUSED;
    const char **const optional[] = {&config->layers_directory, &config->checkpoint, &config->checkpoint_prefix,
                                     &config->checkpoint_mapping};
    for (size_t i = 0; i < ARRAY_LENGTH(optional); i++)
        if (strcmp(*optional[i], "none") == 0)
            *optional[i] = NULL;
    if (!fits_together(config, refusal))
        return CONFIG_REFUSED;
    if (config->is_import && config->layers_directory == NULL) {
        snprintf(message, message_size, "import needs --into DIR, a directory for the layers");
        return CONFIG_REFUSED;
    }
    if (config->is_import || command_words > 0)
        return config->is_import ? CONFIG_IMPORT : CONFIG_HEALTH;
    return settle_memory(config, refusal) ? CONFIG_RUN : CONFIG_REFUSED;
}

/* text in lines of at most 100 characters, each with the indent. */
static void write_wrapped(int fd, const char *text, int indent)
{
    enum { WIDTH = 88 };
    while (*text != '\0') {
        size_t length = strlen(text);
        if (length > WIDTH) {
            length = WIDTH;
            while (text[length] != ' ')
                length--;
        }
        dprintf(fd, "%*s%.*s\n", indent, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
}

void config_write_help(int fd)
{
    dprintf(
        fd,
        "attnd: attention as a service\n\nusage: attnd [--setting value]...\n"
        "       attnd health [ready|live] [--setting value]...\n"
        "       attnd import CHECKPOINT --into DIR [--prefix NAME] [--mapping FILE]\n"
        "       attnd key NAME [RIGHTS [QUOTA]]\n\n"
        "health asks the server that runs with these settings whether it takes requests (ready), or whether it\n"
        "answers at all (live), and ends with 0 when it does. import writes the attention modules of a model's\n"
        "checkpoint, a directory with config.json and model.safetensors, as layers into DIR, for --layers. key makes\n"
        "an API key: for its owner on standard error, and its line of the file of --keys on standard output.\n\n"
        "A setting is a flag or an environment variable; the flag wins.\n\n");
    for (size_t i = 0; i < SETTINGS; i++) {
        char name[VARIABLE_MAX], right[128];
        describe(&settings[i], right, sizeof right);
        dprintf(fd, "  --%s, %s (default %s)\n", settings[i].flag, variable_of(&settings[i], name), settings[i].usual);
        write_wrapped(fd, settings[i].help, 6);
        if (settings[i].type == COUNT || settings[i].type == THREADS || settings[i].type == BYTES ||
            settings[i].type == MEMORY)
            write_wrapped(fd, right, 6);
    }
    dprintf(fd, "  --help\n      this text\n  --version\n      name and version\n");
}
