/* settings.h: the table of settings. A setting is a flag, --max-body, and a variable, ATTND_MAX_BODY. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stddef.h>

#include "base/text.h"
#include "config/values.h"

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

/* Writes the name of the setting's variable and returns it. */
const char *setting_variable(const struct setting *setting, char name[SETTING_NAME_MAX]);

#endif
