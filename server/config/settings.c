/* settings.c: the table of settings. */
#include "config/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

#define AT(member) offsetof(struct config, member)
#define ANY(of_kind)                                                                                                   \
    {                                                                                                                  \
        .kind = &value_##of_kind                                                                                       \
    }
#define RANGE(of_kind, least, most)                                                                                    \
    {                                                                                                                  \
        .kind = &value_##of_kind, .min = (least), .max = (most)                                                        \
    }
#define WORDS(of_words)                                                                                                \
    {                                                                                                                  \
        .kind = &value_word, .words = (of_words)                                                                       \
    }

static const char *const half_close_words[] = {"cancel", "serve", NULL};
static const char *const verify_words[] = {"lazily", "at-start", NULL};
static const char *const format_words[] = {"text", "json", NULL};
static const char *const level_words[] = {"debug", "info", "warn", "error", "off", NULL};

/* The BLAS fails when some 200 threads call it at once, so compute-threads ends at 128. */
static const struct setting settings[] = {
    {SERVING, "listen", "127.0.0.1:8080", AT(listen), ANY(address),
     "address:port to serve on; [::1]:8080 for IPv6, :8080 for every address; port 0 takes a free port, and the first "
     "line of the log has its number"},
    {SERVING, "compute-threads", "auto", AT(compute_threads), RANGE(count_or_auto, 1, CONFIG_COMPUTE_THREADS_MAX),
     "threads that parse, compute and format; auto = the processors that this process may use, quotas included, "
     "and no more than fit into a quarter of --memory"},
    {SERVING, "io-threads", "2", AT(io_threads), RANGE(count, 1, 64), "threads that receive and send"},
    {SERVING, "drain-delay", "1", AT(drain_delay_s), RANGE(count, 0, 3600),
     "seconds after SIGTERM in which new connections are still served while /readyz answers 503, so that a load "
     "balancer can take notice"},
    {SERVING, "drain-timeout", "30", AT(drain_timeout_s), RANGE(count, 0, 3600),
     "seconds after --drain-delay in which running requests may finish"},
    {SERVING, "half-close", "cancel", AT(half_close), WORDS(half_close_words),
     "when a client closes its sending side before the answer: cancel (treat it as gone) or serve"},
    {SERVING, "kernel", "auto", AT(kernel), ANY(text),
     "instruction set to compute with; auto = the best one of this processor; an unknown name lists the known ones"},
    {SERVING, "fonts", "auto", AT(fonts), ANY(text),
     "font files for the labels of pictures, separated by commas; the first font that has a character draws it; auto = "
     "DejaVu Sans and WenQuanYi Micro Hei where they are installed"},

    {LIMITS, "memory", "auto", AT(memory_bytes), RANGE(bytes_or_auto, MIB, 1024 * TIB),
     "memory of the whole process; threads, connections, kept layers, caches, prepared weights and models have shares of it; "
     "all requests together have the rest, unsent answers included; a request beyond it is answered 503; auto = 15/16 "
     "of what this process may use"},
    {LIMITS, "max-body", "64M", AT(max_body_bytes), RANGE(bytes, 1, 64 * GIB), "largest request body"},
    {LIMITS, "deadline", "60", AT(deadline_s), RANGE(count, 1, 86400),
     "seconds from the end of a request's body to its answer; after them the work stops and the answer is 504"},
    {LIMITS, "queue", "64", AT(queue), RANGE(count, 0, 100000),
     "requests that may wait for a compute thread; a request beyond it is answered 503 at once"},
    {LIMITS, "connections", "1000", AT(connections), RANGE(count, 1, 100000),
     "connections at once; a connection beyond it takes the place of the one that has been idle for longest, and is "
     "closed when all are being served; the limit shrinks to an eighth of --memory, at 96 KiB per connection"},
    {LIMITS, "connections-per-address", "0", AT(connections_per_address), RANGE(count, 0, 100000),
     "connections at once from one address; 0 = no limit of its own, as behind a proxy"},
    {LIMITS, "max-result", "256M", AT(max_result_bytes), RANGE(bytes, KIB, 64 * GIB), "largest response body"},
    {LIMITS, "max-memory", "1G", AT(max_memory_bytes), RANGE(bytes, MIB, TIB),
     "memory that one request may take, its body and its result included"},
    {LIMITS, "max-flops", "2e12", AT(max_flops), RANGE(real, 1, 1e30),
     "floating-point operations that one request may take, with softmax and masks at their cost in time"},
    {LIMITS, "idle-timeout", "60", AT(idle_timeout_s), RANGE(count, 1, 86400),
     "seconds of silence after which a connection is closed; the header of a request may take as long to arrive, but at "
     "most 20 seconds"},
    {LIMITS, "request-timeout", "600", AT(request_timeout_s), RANGE(count, 1, 86400),
     "seconds from the first line of a request to the last byte of its answer; after them the connection is cut; the "
     "request may take half of them to arrive"},

    {LAYERS, "model", "none", AT(models), ANY(models),
     "NAME=DIR: a model called NAME in a directory with config.json, model.safetensors or the index of several files, "
     "and tokenizer.json, or in a GGUF file; may be given several times, or as a list with commas"},
    {LAYERS, "models", "none", AT(models_directory), ANY(optional),
     "directory of which each subdirectory with a config.json and each GGUF file is a model, called like it without .gguf"},
    {LAYERS, "no-models", "off", AT(no_models), ANY(toggle), "of the program's own models, only demo is served"},
    {LAYERS, "layers", "none", AT(layers_directory), ANY(optional),
     "directory that keeps layers, one safetensors file per layer; none = layers live in memory and end with the "
     "process"},
    {LAYERS, "layers-readonly", "off", AT(layers_readonly), ANY(toggle),
     "clients can use and read layers, not put or delete them"},
    {LAYERS, "layers-bytes", "auto", AT(layers_bytes), RANGE(bytes_or_auto, 0, 1024 * TIB),
     "bytes that all kept layers together may have; auto = an eighth of --memory, or with a directory no limit but the "
     "disk's own"},
    {LAYERS, "cache-bytes", "auto", AT(cache_bytes), RANGE(bytes_or_auto, 0, 1024 * TIB),
     "bytes that all caches of keys and values (options.cache) may take; one API key may take half of them; auto = an "
     "eighth of --memory"},
    {LAYERS, "layers-max", "10000", AT(layers_max), RANGE(count, 0, 10000000),
     "layers that may be kept, without those of models; a layer beyond it is answered 507"},
    {LAYERS, "layers-versions", "2", AT(layers_versions), RANGE(count, 0, 16),
     "replaced versions of a layer that clients can still ask for by their digest"},
    {LAYERS, "layers-prepared", "auto", AT(layers_prepared_bytes), RANGE(bytes_or_auto, 0, 1024 * TIB),
     "bytes of weights that are kept ready for computing, packed or widened from 16 bits, for the layers and models "
     "that were used last; 0 = each request prepares its own; auto = a sixteenth of --memory"},
    {LAYERS, "layers-verify", "lazily", AT(layers_verify), WORDS(verify_words),
     "lazily or at-start: when the server reads the files of layers; it skips files that are no layers"},
    {LAYERS, "cache-max", "1000", AT(cache_max), RANGE(count, 0, 100000),
     "caches at once, of which one API key holds at most half; a cache beyond it is answered 507"},
    {LAYERS, "cache-idle", "600", AT(cache_idle_s), RANGE(count, 1, 31536000),
     "seconds without a request after which a cache is evicted"},

    {SECURITY, "keys", "none", AT(keys), ANY(path),
     "file of the API keys that requests must bring, read again on SIGHUP; `attnd key NAME` makes a line for it; "
     "none = requests need no key"},
    {SECURITY, "tls-cert", "none", AT(tls_cert), ANY(path),
     "file of the certificate chain in PEM, to serve https; read again on SIGHUP"},
    {SECURITY, "tls-key", "none", AT(tls_key), ANY(path), "file of the certificate's private key in PEM"},
    {SECURITY, "cors-origin", "*", AT(cors_origin), ANY(origins),
     "origins whose pages may send requests, in a browser: *, none, or a list such as https://a.example,*; * opens the "
     "paths that compute and keep nothing; an origin that is named reaches all paths; credentials are never allowed"},
    {SECURITY, "host-names", "none", AT(host_names), ANY(names),
     "names that the field Host may have, such as attnd.example,proxy.example, beside IP addresses and localhost; "
     "a server without keys checks Host on the loopback, and on any address when this list has a name"},
    {SECURITY, "trusted-proxies", "none", AT(trusted_proxies), ANY(networks),
     "addresses and networks of proxies, such as 10.0.0.0/8,::1, whose X-Forwarded-For names the client in the log; the "
     "last hop counts that is no trusted proxy; none = the client is who connects"},
    {SECURITY, "open", "off", AT(open), ANY(toggle),
     "allow addresses beyond the loopback without API keys; use only behind a proxy or a firewall"},

    {LOGGING, "log-level", "info", AT(log_level), WORDS(level_words), "debug, info, warn, error or off"},
    {LOGGING, "log-format", "text", AT(log_format), WORDS(format_words), "text or json"},
    {LOGGING, "log-file", "none", AT(log_file), ANY(path),
     "file to log to, opened again on SIGHUP; none = standard error"},
};

enum { SETTINGS = ARRAY_LENGTH(settings) };

#define WHOLE_MODELS                                                                                                   \
    "a server takes whole models instead: --model NAME=DIR; the attention modules of a model are layers, NAME.PATH; "  \
    "`attnd import` takes --prefix and --mapping"

/* Settings that earlier versions had, and what follows them. */
static const struct text_pair gone[] = {
    {"checkpoint", WHOLE_MODELS},
    {"checkpoint-prefix", WHOLE_MODELS},
    {"checkpoint-mapping", WHOLE_MODELS},
    {"header-timeout", "it is --idle-timeout, and at most 20 seconds"},
    {"receive-timeout", "it is half of --request-timeout"},
    {"health-insecure", "`attnd health` takes --insecure"},
};

const struct setting *setting_at(size_t i)
{
    return i < SETTINGS ? &settings[i] : NULL;
}

const char *setting_group_title(setting_group group)
{
    static const char *const titles[] = {
        [SERVING] = "Serving",   [LIMITS] = "Limits",   [LAYERS] = "Layers and models",
        [SECURITY] = "Security", [LOGGING] = "Logging",
    };
    return titles[group];
}

static const char *variable_of(const char *flag, char name[SETTING_NAME_MAX])
{
    const int length = snprintf(name, SETTING_NAME_MAX, "%s%s", SETTING_VARIABLE_PREFIX, flag);
    for (int i = 0; i < length; i++)
        name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    return name;
}

const char *setting_variable(const struct setting *setting, char name[SETTING_NAME_MAX])
{
    return variable_of(setting->flag, name);
}

const struct setting *setting_by_flag(struct text_span flag)
{
    for (size_t i = 0; i < SETTINGS; i++)
        if (text_equal(flag, settings[i].flag))
            return &settings[i];
    return NULL;
}

const struct setting *setting_by_variable(struct text_span variable)
{
    char name[SETTING_NAME_MAX];
    for (size_t i = 0; i < SETTINGS; i++)
        if (text_equal(variable, setting_variable(&settings[i], name)))
            return &settings[i];
    return NULL;
}

const char *setting_gone(struct text_span source)
{
    char variable[SETTING_NAME_MAX];
    for (size_t i = 0; i < ARRAY_LENGTH(gone); i++)
        if (text_equal(source, gone[i].name) || text_equal(source, variable_of(gone[i].name, variable)))
            return gone[i].value;
    return NULL;
}

const char *setting_nearest_flag(const char *flag)
{
    const char *nearest = NULL;
    size_t distance = NEAREST_MAX + 2; /* flags are long, so a third edit may still be a slip */
    if (strcmp(flag, "port") == 0 || strcmp(flag, "host") == 0) /* what other servers call it */
        return "listen";
    nearest_consider(flag, "help", &nearest, &distance);
    nearest_consider(flag, "version", &nearest, &distance);
    for (size_t i = 0; i < SETTINGS; i++)
        nearest_consider(flag, settings[i].flag, &nearest, &distance);
    return nearest;
}

/* Whether that part of a name is at its end, or before an underscore. */
static bool name_has(struct text_span name, const char *part)
{
    const size_t length = strlen(part);
    for (size_t at = 0; at + length <= name.length; at++)
        if (memcmp(name.at + at, part, length) == 0 && (at + length == name.length || name.at[at + length] == '_'))
            return true;
    return false;
}

bool setting_is_of_others(const char *entry)
{
    static const char *const parts[] = {"_SERVICE_HOST", "_SERVICE_PORT", "_TCP", "_UDP", "_SCTP"};
    static const char *const values[] = {"=tcp://", "=udp://", "=sctp://"};
    const struct text_span name = {entry, strcspn(entry, "=")};
    bool is_of_others = text_equal(name, SETTING_VARIABLE_PREFIX "URL");
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        is_of_others = is_of_others || name_has(name, parts[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
        is_of_others = is_of_others || (name_has(name, "_PORT") && text_begins(entry + name.length, values[i]));
    return is_of_others;
}

const char *setting_say_unknown(const char *entry, char text[SETTING_SAID_MAX])
{
    char flag[SETTING_NAME_MAX], variable[SETTING_NAME_MAX];
    const char *name = entry + strlen(SETTING_VARIABLE_PREFIX);
    const size_t length = strcspn(name, "=");
    text_copy(flag, length < sizeof flag ? length + 1 : sizeof flag, name);
    for (char *c = flag; *c != '\0'; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    const char *nearest = setting_nearest_flag(flag);
    const bool is_near = nearest != NULL && setting_by_flag(text_span_of(nearest)) != NULL;
    snprintf(text, SETTING_SAID_MAX, "%.*s is not a setting and is ignored; %s%s%s", (int)(name + length - entry),
             entry, is_near ? "did you mean " : "--help lists them all", is_near ? variable_of(nearest, variable) : "",
             is_near ? "?" : "");
    for (char *c = text; *c != '\0'; c++) /* a name could move the cursor of a terminal */
        *c = iscntrl((unsigned char)*c) ? '?' : *c;
    return text;
}
