/* The models' rows, and the cache of what was tuned on this machine. */
#include "trainer/preset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/whole_file.h"

/* Where gradients are cut is a model's: which tensors are large. Of how much that gains the device says
 * (tests/bench/bench_trainer presets). */
/* clang-format off */
static const struct {
        const char *model;
        size_t segments[PRESET_SEGMENTS_MAX], count;
        const char *by;
} cuts[] = {
#define BY "the model's table: behind each large tensor; not measured"
        { "mlp",  { 3, 5 },    2, BY },
        { "cnn",  { 1, 3, 7 }, 3, BY },
        { "resnet", { 1, 3, 7, 15 }, 4, BY },
        { "text", { 1, 4 },    2, BY },
#undef BY
};
/* clang-format on */

struct preset preset_none(void)
{
        return (struct preset){ .segments_by = "", .fuse = true };
}

struct preset preset_find(const char *model)
{
        struct preset p = preset_none();

        for (size_t i = 0; i < ARRAY_SIZE(cuts); i++)
                if (strcmp(cuts[i].model, model) == 0) {
                        memcpy(p.segments, cuts[i].segments, sizeof(p.segments));
                        p.segment_count = cuts[i].count;
                        p.segments_by = cuts[i].by;
                        p.load_segment = PRESET_LOAD_AUTO;
                }
        return p;
}

static bool cache_path(const char *given, char *path, size_t path_bytes)
{
        const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

        if (given != NULL)
                return text_copy(path, path_bytes, given);
        if (cache != NULL && cache[0] == '/')
                return text_format(path, path_bytes, "%s/remuda/tuned", cache);
        return home != NULL && home[0] == '/' &&
               text_format(path, path_bytes, "%s/.cache/remuda/tuned", home);
}

bool preset_remembered(const char *path, const char *device, const struct tunable_rows *t,
                       const struct backend_options *o, size_t *ret, char *ret_by)
{
        char name[4096], line[512];
        CLEANUP(fclose_p) FILE *f = cache_path(path, name, sizeof(name)) ? fopen(name, "re") : NULL;
        size_t length = strlen(device);

        while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
                size_t end = strcspn(line, "\n");
                char *by;

                if (strncmp(line, device, length) != 0 || line[length] != '\t' || line[end] != '\n')
                        continue;
                line[end] = '\0';
                by = strchr(line + length + 1, '\t');
                if (by != NULL)
                        *by++ = '\0';
                if (!tunable_parse(t, o, line + length + 1, ret)) /* not ours: as if it were not there */
                        continue;
                (void) text_copy(ret_by, PRESET_BY_BYTES, by != NULL ? by : "an older --tune");
                return true;
        }
        return false;
}

/* Copies the lines of other devices. */
static void keep_others(const char *name, const char *device, FILE *to)
{
        CLEANUP(fclose_p) FILE *f = fopen(name, "re");
        char line[512];

        while (f != NULL && fgets(line, sizeof(line), f) != NULL)
                if (strncmp(line, device, strlen(device)) != 0 || line[strlen(device)] != '\t')
                        (void) fputs(line, to);
}

int preset_remember(const char *path, const char *device, const struct tunable_rows *t, const size_t *setting,
                    const char *by, struct err *err)
{
        char name[4096], directory[4096], text[256];
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
        if (tunable_format(t, setting, text, sizeof(text)) && text[0] != '\0')
                (void) fprintf(w.f, "%s\t%s\t%s\n", device, text, by);
        return whole_file_end(&w, err) < 0 ? err->code : whole_file_rename(&w, err);
}

void preset_write_tuned(const struct tunable_rows *t, const size_t *setting, struct json_line *line)
{
        json_line_open(line, "tuned", '{');
        for (size_t i = 0; i < t->count; i++)
                if (setting[i] > 0)
                        json_line_uint(line, t->rows[i].name, setting[i]);
        json_line_close(line, '}');
}
