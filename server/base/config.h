/*
 * config.h: the settings of attnd, by flag and by environment variable, from one table (config.c).
 *
 * A flag wins over its variable, and the variable over the default. The variable of --max-body is ATTND_MAX_BODY.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdint.h>

#include "base/log.h"
#include "base/machine/memory.h"

/* What a client that closed its sending half gets: one that left altogether looks the same. */
/* Their words in the order of the settings' values. */
typedef enum { SWITCH_OFF, SWITCH_ON } config_switch;
typedef enum { LAYERS_VERIFY_LAZILY, LAYERS_VERIFY_AT_START } layers_verify;

typedef enum { HALF_CLOSE_CANCEL, HALF_CLOSE_SERVE } half_close;

enum { CONFIG_UNKNOWN_MAX = 8 };

/* Of layers_bytes, with a directory: no limit but that of the disk. */
#define CONFIG_AUTO MEMORY_AUTO

/* Texts are borrowed from the command line and the environment. */
struct config {
    char listen_host[112]; /* "" = every address */
    char listen_port[8];
    const char *cors_origin, *host_names;
    const char *kernel; /* "auto" = the best */
    const char *fonts;  /* of labels in pictures: files, separated by commas; "auto" = the known places */
    const char *keys, *tls_cert, *tls_key, *log_file; /* paths; "": none */
    uint64_t io_threads, compute_threads, queue, connections, connections_per_address;
    uint64_t max_body_bytes, max_result_bytes, max_memory_bytes, memory_bytes;
    struct memory_division memory; /* of a server that is to run */
    const char *layers_directory;  /* NULL: none */
    config_switch layers_readonly;
    layers_verify layers_verify;
    uint64_t layers_max, layers_bytes, layers_versions, layers_prepared_bytes;
    uint64_t cache_bytes, cache_max, cache_idle_s;
    const char *checkpoint, *checkpoint_prefix, *checkpoint_mapping; /* NULL: none */
    double max_flops;
    uint64_t idle_timeout_s, header_timeout_s, receive_timeout_s, request_timeout_s, deadline_s, drain_delay_s,
        drain_timeout_s;
    config_switch open;            /* may be reached from other machines by anybody */
    config_switch health_insecure; /* `attnd health` takes any certificate */
    half_close half_close;
    log_format log_format;
    log_level log_level;
    bool is_import;
    const char *probe_path; /* what `attnd health` asks for */

    /* Variables that start with ATTND_ and are no setting: to be warned about, for they may be a slip of the pen. */
    const char *unknown_variable[CONFIG_UNKNOWN_MAX];
    uint64_t unknown_variables;
};

typedef enum { CONFIG_RUN, CONFIG_IMPORT, CONFIG_HEALTH, CONFIG_HELP, CONFIG_VERSION, CONFIG_REFUSED } config_outcome;

/*
 * Reads the settings into *config. CONFIG_HEALTH: the server with these settings is to be asked for probe_path, rather
 * than started (`attnd health [ready|live] [--setting value]...`). CONFIG_IMPORT: the layers of checkpoint are to be
 * written into layers_directory (`attnd import CHECKPOINT --into DIR [--prefix NAME] [--mapping FILE]`).
 * CONFIG_REFUSED: message says which value is wrong and what would be right. argv[0] is skipped; environment ends with
 * NULL.
 */
config_outcome config_read(struct config *config, int argc, char *const *argv, char *const *environment, char *message,
                           size_t message_size);
/* Every setting with its variable, default, range and meaning, to fd. */
void config_write_help(int fd);

#endif
