/* Measured: the file is read when it is another one than it was. */
#include "agent/measured.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/discovery/measured_file.h"
#include "base/cleanup.h"
#include "base/text.h"

struct measured {
        const struct services *services;
        char path[1024];
        struct stat seen; /* st_ino 0 = there was no file */
        struct measured_json_list list;
};

struct measured *measured_new(const struct services *services, const char *state_path)
{
        const char *slash = strrchr(state_path, '/');
        struct measured *m = calloc(1, sizeof(*m));

        if (m == NULL)
                return NULL;
        m->services = services;
        if (slash != NULL)
                (void) text_format(m->path, sizeof(m->path), "%.*s/measured.json", (int) (slash - state_path),
                                   state_path);
        return m;
}

void measured_close(struct measured *m)
{
        if (m == NULL)
                return;
        measured_json_free(&m->list);
        free(m);
}

static bool is_another(const struct stat *a, const struct stat *b)
{
        return a->st_ino != b->st_ino || a->st_dev != b->st_dev || a->st_size != b->st_size ||
               a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static void refresh(struct measured *m)
{
        struct measured_json_list list;
        struct stat st = { 0 };
        struct err err = { 0 };

        if (m->path[0] == '\0' || (lstat(m->path, &st) < 0 && errno != ENOENT && errno != ENOTDIR) ||
            !is_another(&st, &m->seen))
                return;
        m->seen = st;
        if (st.st_ino == 0) { /* taken away: nothing is measured */
                measured_json_free(&m->list);
        } else if (measured_file_read(m->path, &list, &err) < 0) {
                services_event(m->services, "Warning", "MeasurementRefused", NULL, "%s", err.msg);
        } else {
                measured_json_free(&m->list);
                m->list = list;
        }
}

void measured_tell(struct measured *m, struct inventory *inventory)
{
        if (m == NULL)
                return;
        refresh(m);
        measured_json_apply(&m->list, inventory);
}
