/* command_line.c: the command at the front of the command line, then the settings: defaults, variables, flags. */
#include "config/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/process.h"

struct refusal {
    char *message;
    size_t size;
};

struct words {
    char *const *at;
    int count;
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static void drop_word(struct words *words)
{
    words->at++;
    words->count--;
}

/* Removes CHECKPOINT behind `import`. */
static bool take_import(struct config *config, struct words *words, struct refusal refusal)
{
    if (words->count < 1 || words->at[0][0] == '-') {
        snprintf(refusal.message, refusal.size,
                 "usage: attnd import CHECKPOINT --into DIR [--prefix NAME] [--mapping FILE]");
        return false;
    }
    config->checkpoint = words->at[0];
    drop_word(words);
    return true;
}

/* Removes `ready` or `live` behind `health`, or nothing. */
static bool take_health(struct config *config, struct words *words, struct refusal refusal)
{
    (void)refusal;
    const char *what = words->count > 0 ? words->at[0] : "";
    const bool is_live = strcmp(what, "live") == 0;
    config->health_path = is_live ? "/livez" : "/readyz";
    if (is_live || strcmp(what, "ready") == 0)
        drop_word(words);
    return true;
}

/* Removes NAME [RIGHTS [QUOTA]] behind `key`. No settings may follow them. */
static bool take_key(struct config *config, struct words *words, struct refusal refusal)
{
    enum { WORDS_MAX = 3 };
    if (words->count < 1 || words->count > WORDS_MAX) {
        snprintf(refusal.message, refusal.size, "usage: attnd key NAME [RIGHTS [QUOTA]] >> FILE");
        return false;
    }
    config->key_name = words->at[0];
    config->key_rights = words->count > 1 ? words->at[1] : NULL;
    config->key_quota = words->count > 2 ? words->at[2] : NULL;
    *words = (struct words){0};
    return true;
}

#define AT(member) offsetof(struct config, member)

/* The flags that only one command has. They have no variables. */
static const struct setting import_flags[] = {
    {.flag = "into", .at = AT(layers_directory), .rule.kind = &value_optional},
    {.flag = "prefix", .at = AT(checkpoint_prefix), .rule.kind = &value_optional},
    {.flag = "mapping", .at = AT(checkpoint_mapping), .rule.kind = &value_optional},
    {.flag = NULL},
};
static const struct setting health_flags[] = {
    {.flag = "insecure", .at = AT(health_insecure), .rule.kind = &value_toggle},
    {.flag = NULL},
};

static const struct command {
    const char *word;
    config_command command;
    bool (*take)(struct config *config, struct words *words, struct refusal refusal); /* NULL: the word stands alone */
    const struct setting *flags;
} commands[] = {
    {"check", CONFIG_CHECK, NULL, NULL},
    {"import", CONFIG_IMPORT, take_import, import_flags},
    {"health", CONFIG_HEALTH, take_health, health_flags},
    {"key", CONFIG_KEY, take_key, NULL},
};

/* Removes the command from the front of *words. NULL: the words are the settings of a server. */
static const struct command *take_command(struct words *words)
{
    for (size_t i = 0; words->count > 0 && i < ARRAY_LENGTH(commands); i++)
        if (strcmp(words->at[0], commands[i].word) == 0) {
            drop_word(words);
            return &commands[i];
        }
    return NULL;
}

/* --help and --version have priority, so that a wrong variable does not hide the help that explains it. */
static bool asks_for_text(struct words words, config_command *command)
{
    for (int i = 0; i < words.count; i++) {
        const bool is_help = strcmp(words.at[i], "--help") == 0 || strcmp(words.at[i], "-h") == 0;
        *command = is_help ? CONFIG_HELP : CONFIG_VERSION;
        if (is_help || strcmp(words.at[i], "--version") == 0)
            return true;
    }
    return false;
}

/* Whether the settings are those of a server, which runs or is checked. */
static bool is_for_server(const struct config *config)
{
    return config->command == CONFIG_SERVE || config->command == CONFIG_CHECK;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* Sets one setting. source is the flag or the variable, as the user writes it. */
static bool set(struct config *config, const struct setting *setting, const char *source, const char *value,
                struct refusal refusal)
{
    char right[128];
    if (value_read(&setting->rule, value, (char *)config + setting->at))
        return true;
    value_describe(&setting->rule, right, sizeof right);
    snprintf(refusal.message, refusal.size, "%s cannot be \"%s\"; expected %s", source, value, right);
    return false;
}

static bool set_defaults(struct config *config, struct refusal refusal)
{
    const struct setting *setting;
    for (size_t i = 0; (setting = setting_at(i)) != NULL; i++)
        if (!set(config, setting, setting->flag, setting->usual, refusal))
            return false;
    return true;
}

static bool set_by_variable(struct config *config, const char *entry, struct refusal refusal)
{
    const size_t length = strcspn(entry, "=");
    const struct setting *setting = setting_by_variable((struct text_span){entry, length});
    char name[SETTING_NAME_MAX];
    if (setting != NULL)
        return set(config, setting, setting_variable(setting, name), entry[length] == '=' ? entry + length + 1 : "",
                   refusal);
    const char *instead = setting_gone((struct text_span){entry, length});
    if (instead != NULL && is_for_server(config)) {
        snprintf(refusal.message, refusal.size, "%.*s is no longer a setting: %s", (int)length, entry, instead);
        return false;
    }
    if (!setting_is_of_others(entry) && config->unknown_variables < CONFIG_UNKNOWN_MAX)
        config->unknown_variable[config->unknown_variables++] = entry;
    return true;
}

static bool set_by_environment(struct config *config, char *const *environment, struct refusal refusal)
{
    static const char prefix[] = SETTING_VARIABLE_PREFIX;
    for (; *environment != NULL; environment++)
        if (text_begins(*environment, prefix) && !set_by_variable(config, *environment, refusal))
            return false;
    return true;
}

static bool refuse_flag(const char *argument, size_t length, struct refusal refusal)
{
    char flag[SETTING_NAME_MAX];
    snprintf(flag, sizeof flag, "%.*s", (int)length, argument);
    const char *name = flag + strspn(flag, "-");
    const char *instead = setting_gone(text_span_of(name)), *nearest = setting_nearest_flag(name);
    if (instead != NULL)
        snprintf(refusal.message, refusal.size, "%s is no longer a setting: %s", flag, instead);
    else if (nearest != NULL)
        snprintf(refusal.message, refusal.size, "%s is not a setting; did you mean --%s?", flag, nearest);
    else
        snprintf(refusal.message, refusal.size, "%s is not a setting; --help lists them all", flag);
    return false;
}

/* A flag of the command alone, or a setting. Returns NULL for neither. command: NULL for a server. */
static const struct setting *setting_of(const struct command *command, struct text_span flag)
{
    for (const struct setting *own = command != NULL ? command->flags : NULL; own != NULL && own->flag != NULL; own++)
        if (text_equal(flag, own->flag))
            return own;
    return setting_by_flag(flag);
}

/* A switch may have no value, which means "on". The next word is its value if it can be one. */
static bool stands_alone(const struct setting *setting, const struct words *rest)
{
    int ignored;
    return setting->rule.kind == &value_toggle &&
           (rest->count == 0 || !value_read(&setting->rule, rest->at[0], &ignored));
}

/* Removes one flag from the front of *words: --flag=value, --flag value, or a switch alone. */
static bool set_by_flag(struct config *config, const struct command *command, struct words *words,
                        struct refusal refusal)
{
    const char *argument = words->at[0];
    const size_t length = strcspn(argument, "=");
    const struct setting *setting = NULL;
    drop_word(words);
    if (text_begins(argument, "--"))
        setting = setting_of(command, (struct text_span){argument + 2, length - 2});
    if (setting == NULL)
        return refuse_flag(argument, length, refusal);
    char source[SETTING_NAME_MAX];
    snprintf(source, sizeof source, "--%s", setting->flag);
    if (argument[length] == '=')
        return set(config, setting, source, argument + length + 1, refusal);
    if (stands_alone(setting, words))
        return set(config, setting, source, "on", refusal);
    if (words->count == 0) {
        snprintf(refusal.message, refusal.size, "%s needs a value", source);
        return false;
    }
    const char *value = words->at[0];
    drop_word(words);
    return set(config, setting, source, value, refusal);
}

static bool set_by_flags(struct config *config, const struct command *command, struct words words,
                         struct refusal refusal)
{
    while (words.count > 0)
        if (!set_by_flag(config, command, &words, refusal))
            return false;
    return true;
}

/* ---- settings against each other --------------------------------------------------------------------------------- */

/* False: two settings contradict each other, or the command lacks one. */
static bool fit_together(const struct config *config, struct refusal refusal)
{
    /* `attnd health` needs no private key. */
    if (config->command != CONFIG_HEALTH && (config->tls_cert == NULL) != (config->tls_key == NULL)) {
        snprintf(refusal.message, refusal.size, "tls-cert and tls-key go together: one is given, the other is not");
        return false;
    }
    if (config->max_body_bytes >= config->max_memory_bytes) {
        snprintf(refusal.message, refusal.size,
                 "max-body (%llu bytes) must be smaller than max-memory (%llu bytes), which includes the body",
                 (unsigned long long)config->max_body_bytes, (unsigned long long)config->max_memory_bytes);
        return false;
    }
    if (config->command == CONFIG_IMPORT && config->layers_directory == NULL) {
        snprintf(refusal.message, refusal.size, "import needs --into DIR, a directory for the layers");
        return false;
    }
    return true;
}

static uint64_t fewer(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void settle_timeouts(struct config *config)
{
    enum { HEADER_MAX_S = 20 };
    config->header_timeout_s = fewer(config->idle_timeout_s, HEADER_MAX_S);
    config->receive_timeout_s = (config->request_timeout_s + 1) / 2;
}

/*
 * Layers count as memory only without a directory. With one, they are mapped files, which the kernel may drop and read
 * again.
 */
static bool keeps_layers_in_memory(const struct config *config)
{
    return config->layers_directory == NULL;
}

/* Replaces "auto" by numbers, and reduces what does not fit into the memory. False: no request would have memory. */
static bool settle_memory(struct config *config, struct refusal refusal)
{
    if (config->memory_bytes == VALUE_AUTO)
        config->memory_bytes = memory_auto_bytes();
    if (config->compute_threads == VALUE_AUTO)
        config->compute_threads = fewer(fewer(machine_processors(), CONFIG_COMPUTE_THREADS_MAX),
                                        memory_compute_threads(config->memory_bytes));
    struct memory_division *memory = &config->memory;
    *memory = (struct memory_division){.total = config->memory_bytes,
                                       .io_threads = config->io_threads,
                                       .compute_threads = config->compute_threads,
                                       .connections = config->connections,
                                       .layers_bytes = keeps_layers_in_memory(config) ? config->layers_bytes : 0,
                                       .caches_bytes = config->cache_bytes,
                                       .prepared_bytes = config->layers_prepared_bytes,
                                       .has_models = config->models.count > 0 || config->models_directory != NULL,
                                       .has_only_demo = config->no_models == SWITCH_ON};
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

/* ---- all of it --------------------------------------------------------------------------------------------------- */

bool command_line_read(struct config *config, int argc, char *const *argv, char *const *environment, char *message,
                       size_t message_size)
{
    const struct refusal refusal = {message, message_size};
    struct words words = {argv + 1, argc - 1};
    memset(config, 0, sizeof *config);
    if (asks_for_text(words, &config->command))
        return true;
    const struct command *command = take_command(&words);
    config->command = command != NULL ? command->command : CONFIG_SERVE;
    if (command != NULL && command->command == CONFIG_KEY)
        return command->take(config, &words, refusal);
    if (!set_defaults(config, refusal) || !set_by_environment(config, environment, refusal) ||
        (command != NULL && command->take != NULL && !command->take(config, &words, refusal)) ||
        !set_by_flags(config, command, words, refusal) || !fit_together(config, refusal))
        return false;
    settle_timeouts(config);
    return !is_for_server(config) || settle_memory(config, refusal);
}
