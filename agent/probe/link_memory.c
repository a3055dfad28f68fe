/* Link memory: two equal answers are believed, and left in a file a vendor. */
#include "agent/probe/link_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "agent/inventory/link_report_line.h"
#include "agent/probe/probe_driver.h"
#include "base/cleanup.h"
#include "io/make_folders.h"
#include "io/whole_file.h"

#define FILE_MAX_BYTES ((size_t) 256 << 10)

struct link_memory {
        struct log *log;
        char directory[900];
        struct link_report_list believed, last; /* last: as said last, believed or not */
};

static void load(struct link_memory *m, const char *vendor)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        CLEANUP(free_p) char *bytes = malloc(FILE_MAX_BYTES);
        struct err err = { 0 };
        char path[1024];
        size_t size;

        if (bytes == NULL || !text_format(path, sizeof(path), "%s/%s", m->directory, vendor))
                return;
        f = fopen(path, "re");
        if (f == NULL)
                return;
        size = fread(bytes, 1, FILE_MAX_BYTES, f);
        if (size == FILE_MAX_BYTES ||
            link_report_line_decode_all(vendor, bytes, size, &m->believed, &err) < 0)
                log_line(m->log, LOG_WARNING, "links", "discarded=%s error=\"%s\"", path,
                         size == FILE_MAX_BYTES ? "too long" : err.msg);
}

struct link_memory *link_memory_new(const char *directory, struct log *log)
{
        struct link_memory *m = calloc(1, sizeof(*m));

        if (m == NULL)
                return NULL;
        m->log = log;
        (void) text_copy(m->directory, sizeof(m->directory), directory);
        for (const struct probe_driver *d = probe_drivers; directory[0] != '\0' && d->vendor != NULL; d++)
                if (d->links)
                        load(m, d->vendor);
        return m;
}

void link_memory_free(struct link_memory *m)
{
        if (m == NULL)
                return;
        link_report_list_free(&m->believed);
        link_report_list_free(&m->last);
        free(m);
}

static void save(struct link_memory *m, const char *vendor)
{
        struct text text = { 0 };
        char path[1024];
        int r;

        if (m->directory[0] == '\0' || !text_format(path, sizeof(path), "%s/%s", m->directory, vendor))
                return;
        text_printf(&text, "# what the library of %s said of direct links between its devices\n", vendor);
        for (size_t i = 0; i < m->believed.count; i++)
                if (strcmp(m->believed.reports[i].vendor, vendor) == 0)
                        link_report_line_encode(&m->believed.reports[i], &text);
        make_folders(path);
        if (text.failed)
                r = -ENOMEM;
        else
                r = whole_file_write(path, text.data, text.size_bytes, 0644, 0, NULL);
        text_free(&text);
        if (r < 0)
                log_line(m->log, LOG_INFO, "links", "not_written=%s error=\"%s\"", path, strerrordesc_np(-r));
}

/* Return: is it believed now, and was not before? */
static bool take(struct link_memory *m, const struct link_report *report)
{
        const struct link_report *before = link_report_list_find(&m->believed, report->vendor, report->pci),
                                 *last = link_report_list_find(&m->last, report->vendor, report->pci);
        bool again = last != NULL && link_report_same(last, report),
             news = before == NULL || !link_report_same(before, report);

        (void) link_report_list_put(&m->last, report);
        return news && (before == NULL || again) && link_report_list_put(&m->believed, report) == 0;
}

bool link_memory_take(struct link_memory *m, const char *vendor, const struct link_report_list *answer)
{
        bool news = false;

        for (size_t i = 0; i < answer->count; i++)
                news = take(m, &answer->reports[i]) || news;
        if (news)
                save(m, vendor);
        return news;
}

const struct link_report_list *link_memory_believed(const struct link_memory *m)
{
        return &m->believed;
}
