/* help.c: writes the text of `attnd --help`. */
#include "config/command_line.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 6 };

/* Writes text in lines of at most 94 characters. */
static void write_wrapped(int fd, const char *text)
{
    enum { WIDTH = 88 };
    while (*text != '\0') {
        size_t length = strlen(text);
        if (length > WIDTH) {
            length = WIDTH;
            while (text[length] != ' ')
                length--;
        }
        dprintf(fd, "%*s%.*s\n", INDENT, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
}

static void write_setting(int fd, const struct setting *setting)
{
    char variable[SETTING_NAME_MAX], range[128];
    dprintf(fd, "  --%s, %s (default %s)\n", setting->flag, setting_variable(setting, variable), setting->usual);
    write_wrapped(fd, setting->help);
    if (setting->rule.max > 0) {
        value_describe(&setting->rule, range, sizeof range);
        write_wrapped(fd, range);
    }
}

void help_write(int fd)
{
    const struct setting *setting, *before = NULL;
    dprintf(fd, "attnd: attention as a service\n\nusage: attnd [--setting value]...\n"
                "       attnd check [--setting value]...\n"
                "       attnd health [ready|live] [--insecure] [--setting value]...\n"
                "       attnd import CHECKPOINT --into DIR [--prefix NAME] [--mapping FILE]\n"
                "       attnd key NAME [RIGHTS [QUOTA]]\n\n"
                "check prepares a server with these settings and says which part fails: the kernel, the keys, the\n"
                "certificate and the address, each layer and model. It serves nobody. The exit status is 0 when\n"
                "all is well, 1 when something fails, and 2 for a wrong setting.\n"
                "health asks the server that runs with the same settings whether it takes requests (ready), or\n"
                "whether it answers at all (live). Its exit status is 0 for yes. With --tls-cert the server must\n"
                "show that certificate; --insecure takes any.\n"
                "import reads the checkpoint of a model, a directory with config.json and model.safetensors. It\n"
                "writes the model's attention modules as layers into DIR, for --layers. Names of layers begin\n"
                "with NAME and a dot. FILE says which tensors are attention, for a model of an unknown kind.\n"
                "key makes an API key. It prints the key for its owner on standard error, and the key's line for\n"
                "the file of --keys on standard output.\n\n"
                "  --help\n      this text\n  --version\n      name and version\n\n"
                "A setting is a flag or an environment variable; the flag wins. Each group begins with the\n"
                "settings that are used most.\n");
    for (size_t i = 0; (setting = setting_at(i)) != NULL; before = setting, i++) {
        if (before == NULL || before->group != setting->group)
            dprintf(fd, "\n%s:\n\n", setting_group_title(setting->group));
        write_setting(fd, setting);
    }
}
