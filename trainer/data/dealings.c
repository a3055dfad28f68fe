/* A list that grows by a line each time a run goes on with other workers. */
#include "trainer/data/dealings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void dealings_free(struct dealings *d)
{
        for (size_t i = 0; i < d->count; i++)
                free(d->list[i].shares);
        free(d->list);
        *d = (struct dealings){ 0 };
}

static bool alike(const struct dealing *a, const struct dealing *b)
{
        return !(a->exchange < b->exchange) && !(a->exchange > b->exchange) &&
               a->round_robin == b->round_robin && a->as_it_lies == b->as_it_lies &&
               a->workers == b->workers && memcmp(a->shares, b->shares, a->workers * sizeof(*a->shares)) == 0;
}

static void print_one(const struct dealing *one, struct text *out)
{
        text_printf(out, "%llu %.17g %s %s ", (unsigned long long) one->from, one->exchange,
                    one->round_robin ? "round-robin" : "blocks", one->as_it_lies ? "as-it-lies" : "shuffled");
        for (size_t w = 0; w < one->workers; w++)
                text_printf(out, "%s%zu", w > 0 ? "," : "", one->shares[w]);
        text_append(out, "\n");
}

/* Return: the bytes of its line, or a negative errno. */
static int64_t line_bytes(const struct dealing *one, struct err *err)
{
        CLEANUP(text_free) struct text line = { 0 };

        if (one->workers > DEALINGS_WORKERS_MAX)
                return err_set(err, -E2BIG, "%zu workers cannot keep samples: %d at the most", one->workers,
                               DEALINGS_WORKERS_MAX);
        print_one(one, &line);
        return line.failed ? err_set(err, -ENOMEM, "no memory for the workers' shares")
                           : (int64_t) line.size_bytes;
}

static int drop_last(struct dealings *d, struct err *err)
{
        int64_t bytes = line_bytes(&d->list[d->count - 1], err);

        if (bytes < 0)
                return (int) bytes;
        d->text_bytes -= (size_t) bytes;
        free(d->list[--d->count].shares);
        return 0;
}

int dealings_add(struct dealings *d, const struct dealing *dealing, struct err *err)
{
        struct dealing *more, copy = *dealing;
        int64_t bytes = line_bytes(dealing, err);

        if (bytes < 0)
                return (int) bytes;

        if (d->count > 0 && alike(&d->list[d->count - 1], dealing))
                return 0;
        if (d->count > 0 && d->list[d->count - 1].from == dealing->from) {
                /* as the one before that, perhaps */
                return drop_last(d, err) < 0 ? err->code : dealings_add(d, dealing, err);
        }
        if (d->count == DEALINGS_MAX || d->text_bytes + (size_t) bytes > DEALINGS_TEXT_MAX)
                return err_set(err, -E2BIG,
                               "the samples that workers keep were dealt %zu times, more than a checkpoint "
                               "holds: begin a new run, with another --checkpoint",
                               d->count);
        copy.shares = calloc(copy.workers, sizeof(*copy.shares));
        more = reallocarray(d->list, d->count + 1, sizeof(*more));
        if (more != NULL)
                d->list = more;
        if (more == NULL || copy.shares == NULL) {
                free(copy.shares);
                return err_set(err, -ENOMEM, "no memory for the workers' shares");
        }
        memcpy(copy.shares, dealing->shares, copy.workers * sizeof(*copy.shares));
        d->list[d->count++] = copy;
        d->text_bytes += (size_t) bytes;
        return 0;
}

void dealings_print(const struct dealings *d, struct text *out)
{
        for (size_t i = 0; i < d->count; i++)
                print_one(&d->list[i], out);
}

/* @shares: room for DEALINGS_WORKERS_MAX */
static bool parse_shares(char *words, size_t batch, size_t *shares, size_t *ret_count)
{
        size_t count = 0, sum = 0;
        uint64_t share;
        char *word;

        while ((word = strsep(&words, ",")) != NULL) {
                if (count == DEALINGS_WORKERS_MAX || text_parse_uint64(word, &share) < 0 ||
                    share > batch - sum)
                        return false;
                shares[count++] = (size_t) share;
                sum += (size_t) share;
        }
        *ret_count = count;
        return sum == batch;
}

static bool parse_line(char *line, size_t batch, struct dealing *ret)
{
        const char *from = strsep(&line, " "), *exchange = strsep(&line, " "), *order = strsep(&line, " "),
                   *lie = strsep(&line, " ");

        if (line == NULL || text_parse_uint64(from, &ret->from) < 0 ||
            text_parse_double(exchange, &ret->exchange) < 0 || ret->exchange < 0 || ret->exchange > 1)
                return false;
        ret->round_robin = strcmp(order, "round-robin") == 0;
        ret->as_it_lies = strcmp(lie, "as-it-lies") == 0;
        return (ret->round_robin || strcmp(order, "blocks") == 0) &&
               (ret->as_it_lies || strcmp(lie, "shuffled") == 0) &&
               parse_shares(line, batch, ret->shares, &ret->workers);
}

int dealings_parse(const char *text, size_t batch, struct dealings *ret, struct err *err)
{
        CLEANUP(free_p) char *copy = strdup(text);
        CLEANUP(free_p) size_t *shares = calloc(DEALINGS_WORKERS_MAX, sizeof(*shares));
        struct dealings d = { 0 };
        char *rest = copy, *line;
        int r = copy != NULL && shares != NULL ? 0
                                               : err_set(err, -ENOMEM, "no memory for the workers' shares");

        while (r == 0 && (line = strsep(&rest, "\n")) != NULL && line[0] != '\0') {
                struct dealing one = { .shares = shares };

                if (!parse_line(line, batch, &one) ||
                    (d.count == 0 ? one.from != 0 : one.from <= d.list[d.count - 1].from))
                        r = err_set(err, -EINVAL, "line %zu of how its samples were dealt is damaged",
                                    d.count + 1);
                else
                        r = dealings_add(&d, &one, err);
        }
        if (r == 0 && (d.count == 0 || rest != NULL))
                r = err_set(err, -EINVAL, "how its samples were dealt is damaged");
        if (r < 0) {
                dealings_free(&d);
                return r;
        }
        *ret = d;
        return 0;
}
