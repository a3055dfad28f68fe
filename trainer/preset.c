/* The shipped rows, and the cache of what was tuned on this machine. */
#include "trainer/preset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/whole_file.h"

/* Tiles are known for the portable build alone, whose "core group" is the host it was measured on; a device
 * that nobody had gets none, and --tune finds its own. `device` is the beginning of a device model's name. */
#define AUTO PRESET_LOAD_AUTO
/* clang-format off */
static const struct {
        const char *model, *device;
        struct preset preset;
} shipped[] = {
        { "mlp",  "portable core group", { { 64, 64, 32, 32 }, { 3, 5 },    2, AUTO, true } },
        { "cnn",  "portable core group", { { 64, 64, 32, 32 }, { 1, 3, 7 }, 3, AUTO, true } },
        { "text", "portable core group", { { 64, 64, 32, 32 }, { 1, 4 },    2, AUTO, true } },
        { "mlp",  "",                    { { 0, 0, 0, 0 },      { 3, 5 },    2, AUTO, true } },
        { "cnn",  "",                    { { 0, 0, 0, 0 },      { 1, 3, 7 }, 3, AUTO, true } },
        { "text", "",                    { { 0, 0, 0, 0 },      { 1, 4 },    2, AUTO, true } },
};
/* clang-format on */

struct preset preset_find(const char *model, const char *device)
{
        for (size_t i = 0; i < ARRAY_SIZE(shipped); i++)
                if (strcmp(shipped[i].model, model) == 0 && text_starts_with(device, shipped[i].device))
                        return shipped[i].preset;
        return (struct preset){ .fuse = true };
}

static bool cache_path(const char *given, char *path, size_t path_bytes)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

        if (given != NULL)
                return text_copy(path, path_bytes, given);
        if (cache != NULL && cache[0] == '/')
                return text_format(path, path_bytes, "%s/remuda/tiles", cache);
        return home != NULL && home[0] == '/' &&
               text_format(path, path_bytes, "%s/.cache/remuda/tiles", home);
}

static bool parse_line(const char *line, const char *device, struct preset_tiles *ret)
{
        size_t length = strlen(device);
        struct preset_tiles t;
        char *end;

        if (strncmp(line, device, length) != 0 || line[length] != '\t')
                return false;
        t.rows = strtoul(line + length + 1, &end, 10);
        t.cols = strtoul(end, &end, 10);
        t.inner = strtoul(end, &end, 10);
        t.lanes = *end == '\n' ? 0 : strtoul(end, &end, 10);
        if (*end != '\n' || t.lanes > 4096 || t.rows - 1 > 4095 || t.cols - 1 > 4095 || t.inner - 1 > 4095)
                return false; /* not ours: as if it were not there */
        *ret = t;
        return true;
}

bool preset_remembered(const char *path, const char *device, struct preset_tiles *ret)
{
        char name[4096], line[256];
        CLEANUP(fclose_p) FILE *f = cache_path(path, name, sizeof(name)) ? fopen(name, "re") : NULL;

        while (f != NULL && fgets(line, sizeof(line), f) != NULL)
                if (parse_line(line, device, ret))
                        return true;
        return false;
}

/* Copies the lines of other devices. */
static void keep_others(const char *name, const char *device, FILE *to)
{
        CLEANUP(fclose_p) FILE *f = fopen(name, "re");
        char line[256];

        while (f != NULL && fgets(line, sizeof(line), f) != NULL)
                if (strncmp(line, device, strlen(device)) != 0 || line[strlen(device)] != '\t')
                        (void) fputs(line, to);
}

int preset_remember(const char *path, const char *device, const struct preset_tiles *tiles, struct err *err)
{
        char name[4096], directory[4096];
        struct whole_file w;
        char *slash;

        if (!cache_path(path, name, sizeof(name)))
                return err_set(err, -EINVAL,
                               "no place for the cache: neither --cache, XDG_CACHE_HOME nor HOME");
        (void) text_copy(directory, sizeof(directory), name);
        for (slash = strchr(directory + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(directory, 0777) < 0 && errno != EEXIST)
                        return err_set(err, -errno, "directory '%s': %m", directory);
                *slash = '/';
        }
        if (whole_file_open(&w, "--cache", name, err) < 0)
                return err->code;
        keep_others(name, device, w.f);
        (void) fprintf(w.f, "%s\t%zu %zu %zu %zu\n", device, tiles->rows, tiles->cols, tiles->inner,
                       tiles->lanes);
        return whole_file_end(&w, err) < 0 ? err->code : whole_file_rename(&w, err);
}

void preset_write_tiles(const struct preset_tiles *t, struct json_line *line)
{
        json_line_open(line, "tiles", '[');
        json_line_uint(line, NULL, t->rows);
        json_line_uint(line, NULL, t->cols);
        json_line_uint(line, NULL, t->inner);
        json_line_uint(line, NULL, t->lanes);
        json_line_close(line, ']');
}
