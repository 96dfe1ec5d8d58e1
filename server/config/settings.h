/*
 * settings.h: the command and the settings, and the table of settings. A setting is a flag, --max-body, and a variable,
 * ATTND_MAX_BODY. A new one is a member of struct config and a row in settings.c.
 */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stddef.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/values.h"

/* ---- what was chosen ---- */

typedef enum {
    CONFIG_SERVE,
    CONFIG_CHECK,
    CONFIG_IMPORT,
    CONFIG_HEALTH,
    CONFIG_KEY,
    CONFIG_HELP,
    CONFIG_VERSION
} config_command;

/* These enums have the order of their words in settings.c. */
typedef enum { SWITCH_OFF, SWITCH_ON } config_switch;
typedef enum { LAYERS_VERIFY_LAZILY, LAYERS_VERIFY_AT_START } layers_verify;
typedef enum { HALF_CLOSE_CANCEL, HALF_CLOSE_SERVE } half_close;

enum { CONFIG_UNKNOWN_MAX = 8, CONFIG_COMPUTE_THREADS_MAX = 128 };

/* Texts are borrowed from the command line and the environment. A text of NULL means that none was given ("none"). */
struct config {
    config_command command;
    const char *health_path;                       /* for `attnd health`: the path that it requests */
    const char *key_name, *key_rights, *key_quota; /* for `attnd key` */

    struct value_address listen;
    const char *cors_origin, *host_names, *trusted_proxies; /* lists; "": empty */
    const char *kernel;                                     /* "auto": the best kernel */
    const char *fonts;                                      /* files, separated by commas; "auto": the known places */
    const char *keys, *tls_cert, *tls_key, *log_file;       /* paths */
    uint64_t io_threads, compute_threads, queue, connections, connections_per_address;
    uint64_t max_body_bytes, max_result_bytes, max_memory_bytes, memory_bytes;
    struct memory_division memory; /* for CONFIG_SERVE and CONFIG_CHECK: how memory_bytes is divided */
    struct value_list models;      /* texts of "NAME=DIR,NAME=DIR" */
    const char *models_directory;
    config_switch no_models;
    const char *layers_directory;
    config_switch layers_readonly;
    layers_verify layers_verify;
    uint64_t layers_max, layers_versions, layers_prepared_bytes;
    uint64_t layers_bytes; /* VALUE_AUTO: no limit but the size of the disk */
    uint64_t cache_bytes, cache_max, cache_idle_s;
    const char *checkpoint, *checkpoint_prefix, *checkpoint_mapping; /* for `attnd import` */
    double max_flops;
    uint64_t idle_timeout_s, request_timeout_s, deadline_s, drain_delay_s, drain_timeout_s;
    uint64_t header_timeout_s, receive_timeout_s; /* they follow from the two timeouts above */
    config_switch open;                           /* clients without a key may connect from other machines */
    config_switch health_insecure;                /* for `attnd health`: it takes any certificate */
    half_close half_close;
    log_format log_format;
    log_level log_level;

    /*
     * Variables that begin with ATTND_ but are not settings. The server warns about them, because each may be a
     * mistake.
     */
    const char *unknown_variable[CONFIG_UNKNOWN_MAX];
    uint64_t unknown_variables;
};

/* ---- the table ---- */

#define SETTING_VARIABLE_PREFIX "ATTND_"

/* The groups of --help, in its order. */
typedef enum { SERVING, LIMITS, LAYERS, SECURITY, LOGGING } setting_group;

struct setting {
    setting_group group;
    const char *flag;  /* without the dashes */
    const char *usual; /* the default, in the form that a user would give */
    size_t at;         /* the offset of its member in struct config */
    struct value_rule rule;
    const char *help;
};

enum { SETTING_NAME_MAX = 64 };

/*
 * The settings in the order of --help: by group, and in each group the most used settings first. NULL after the last
 * one.
 */
const struct setting *setting_at(size_t i);
const char *setting_group_title(setting_group group);

/* Returns NULL when no setting has that flag. */
const struct setting *setting_by_flag(struct text_span flag);
const struct setting *setting_by_variable(struct text_span variable);
/*
 * What to use instead of a setting that earlier versions had. source is its flag or its variable. NULL: there was no such
 * setting.
 */
const char *setting_gone(struct text_span source);
/* The flag that a mistyped one most probably means. NULL: none is similar. */
const char *setting_nearest_flag(const char *flag);

/*
 * Whether a variable that begins like ours belongs to others: Kubernetes names the services of a namespace so, and
 * ATTND_URL is for clients. entry is "NAME=value".
 */
bool setting_is_of_others(const char *entry);
enum { SETTING_SAID_MAX = 256 };
/* Writes what is said about a variable that is no setting, with the nearest one, and returns it. */
const char *setting_say_unknown(const char *entry, char text[SETTING_SAID_MAX]);

/* Writes the name of the setting's variable and returns it. */
const char *setting_variable(const struct setting *setting, char name[SETTING_NAME_MAX]);

#endif
