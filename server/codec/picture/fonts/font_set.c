/* font_set.c: maps font files into memory. */
#include "codec/picture/fonts/fonts.h"

#include <errno.h>
#include <fcntl.h>
#include <ft2build.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include FT_FREETYPE_H

#include "base/array.h"
#include "base/mapping.h"

/*
 * The places where Debian, Fedora, Arch and Alpine keep the fonts of "auto". The first existing file of each line is
 * used.
 */
static const char *const known_places[][4] = {
    {"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
     "/usr/share/fonts/TTF/DejaVuSans.ttf", "/usr/share/fonts/dejavu/DejaVuSans.ttf"},
    {"/usr/share/fonts/truetype/wqy/wqy-microhei.ttc", "/usr/share/fonts/wqy-microhei/wqy-microhei.ttc",
     "/usr/share/fonts/wqy-microhei-fonts/wqy-microhei.ttc",
     "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"},
};

/* Returns NULL when FreeType reads data as a font, else the reason why not. */
static const char *what_is_wrong(const unsigned char *data, size_t bytes)
{
    FT_Library library;
    FT_Face face;
    if (FT_Init_FreeType(&library) != 0)
        return "the font library does not start";
    const char *wrong = NULL;
    if (FT_New_Memory_Face(library, data, (FT_Long)bytes, 0, &face) != 0)
        wrong = "not a font";
    else if (!FT_IS_SCALABLE(face))
        wrong = "not a scalable font";
    FT_Done_FreeType(library);
    return wrong;
}

/* Opens and maps the file. Returns NULL, or the reason why it failed. */
static const char *map_font(struct font_file *file, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (fd < 0 || fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size <= 0) {
        const char *why = fd < 0 ? strerror(errno) : "not a file with content";
        if (fd >= 0)
            close(fd);
        return why;
    }
    size_t bytes = (size_t)facts.st_size;
    struct mapping *mapping;
    const int outcome = mapping_add(fd, bytes, &mapping);
    close(fd);
    if (outcome != 0)
        return "no memory";
    const unsigned char *data = mapping_bytes(mapping);
    const char *wrong = what_is_wrong(data, bytes);
    if (wrong != NULL)
        mapping_remove(mapping);
    else
        *file = (struct font_file){path, data, bytes, mapping};
    return wrong;
}

static void add_known(struct font_set *set)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known_places); i++) {
        const char *wrong = "not looked for";
        for (size_t j = 0; j < 4 && wrong != NULL && set->count < FONT_SET_MAX; j++)
            wrong = map_font(&set->file[set->count], known_places[i][j]);
        set->count += wrong == NULL;
    }
}

static bool add_named(struct font_set *set, const char *path, char *message, size_t message_size)
{
    const char *wrong = set->count < FONT_SET_MAX ? map_font(&set->file[set->count], path) : "one font too many";
    if (wrong != NULL)
        snprintf(message, message_size, "font %s: %s", path, wrong);
    set->count += wrong == NULL;
    return wrong == NULL;
}

bool font_set_open(struct font_set *set, const char *list, char *message, size_t message_size)
{
    *set = (struct font_set){.paths = strdup(list)};
    bool is_ok = set->paths != NULL;
    if (!is_ok)
        snprintf(message, message_size, "fonts: no memory");
    char *rest = NULL;
    for (char *path = is_ok ? strtok_r(set->paths, ",", &rest) : NULL; path && is_ok; path = strtok_r(NULL, ",", &rest))
        if (strcmp(path, "auto") == 0)
            add_known(set);
        else
            is_ok = add_named(set, path, message, message_size);
    if (!is_ok)
        font_set_close(set);
    return is_ok;
}

void font_set_close(struct font_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        mapping_remove(set->file[i].mapping);
    free(set->paths);
    *set = (struct font_set){0};
}
