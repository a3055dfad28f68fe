/* Lines of the ranks' files as they are, those that are whole. */
#include "job/show/report_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "base/text.h"

/* The array's members, each behind a comma but the first. */
struct writing {
        FILE *to;
        size_t events; /* that happened at a time: names are none */
        bool any;
};

static void put(struct writing *w, const char *event, size_t bytes)
{
        (void) fputs(w->any ? ",\n" : "[\n", w->to);
        (void) fwrite(event, 1, bytes, w->to);
        w->any = true;
}

/* "rank 1, cpu on node a" */
static int put_name(struct writing *w, const struct job_view *view, size_t rank)
{
        const struct job_view_rank *of = &view->ranks[rank];
        CLEANUP(text_free) struct text words = { 0 }, event = { 0 };

        text_printf(&words, "rank %zu", rank);
        if (job_view_word(of->runtime)[0] != '\0')
                text_printf(&words, ", %s", of->runtime);
        if (job_view_word(of->node)[0] != '\0')
                text_printf(&words, " on %s", of->node);
        text_printf(&event,
                    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%zu,\"args\":{\"name\":", rank);
        json_writer_append_string(&event, words.failed ? "" : words.data);
        text_append(&event, "}}");
        if (words.failed || event.failed)
                return -ENOMEM;
        put(w, event.data, event.size_bytes);
        return 0;
}

static void copy(struct writing *w, const char *path)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        CLEANUP(free_p) char *line = NULL;
        size_t size = 0;
        ssize_t length;

        while (f != NULL && (length = getline(&line, &size, f)) > 0) {
                if (line[0] != '{' || length < 3 || strcmp(line + length - 3, "},\n") != 0)
                        continue; /* the bracket; or a rank was killed over it */
                put(w, line, (size_t) length - 2);
                w->events++;
        }
}

static void put_activity(struct writing *w, const struct report_activity *a)
{
        char event[200];

        if (text_format(event, sizeof(event),
                        "{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%" PRIu64 ",\"dur\":%" PRIu64
                        ",\"pid\":0,\"tid\":%u,\"args\":{\"step\":%" PRIu64 "}}",
                        report_what_names[a->what], a->begin_usec, a->end_usec - a->begin_usec, a->rank,
                        a->step)) {
                put(w, event, strlen(event));
                w->events++;
        }
}

int report_trace(const struct report *report, FILE *to, struct err *err)
{
        const char *folder = job_view_word(report->view->folder);
        struct writing w = { .to = to };
        char path[PATH_MAX];

        for (size_t i = 0; i < report->rank_count; i++) {
                if (put_name(&w, report->view, i) < 0)
                        return err_set(err, -ENOMEM, "no memory for the trace");
                if (folder[0] != '\0' && text_format(path, sizeof(path), "%s/timeline.%zu", folder, i))
                        copy(&w, path);
        }
        for (size_t i = 0; report->coarse && i < report->activity_count; i++)
                put_activity(&w, &report->activities[i]);
        if (w.events == 0)
                return err_set(
                        err, -ENOENT,
                        "job '%.80s' has left no timeline: the reference trainer writes one where `remuda "
                        "run` starts it",
                        job_view_word(report->view->job));
        (void) fputs("\n]\n", to);
        return ferror(to) != 0 ? err_set(err, -EIO, "the trace could not be written whole") : 0;
}
