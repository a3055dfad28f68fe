/* remuda top --nodes: what is on each node's chips is the ledger's word, as in `remuda nodes`; what they are
 * busy with is their agents' (agent_pages.h). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "cli/agent_pages.h"
#include "cli/command/cluster_arguments.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/nodes_filter.h"
#include "cli/top.h"
#include "io/clock.h"
#include "store/kubernetes/kube.h"

struct node_row {
        const char *node;
        struct nodes_filter_totals chips; /* without CPU groups */
        const struct agent_page *page;
};

struct top_nodes {
        const struct top_options *options;
        struct cluster_arguments_opened opened;
        struct kube_client *client; /* NULL = a saved cluster */
        struct agent_page *pages;
        struct node_row *rows;
        size_t count;
        bool ended; /* by a key */
};

static double ill(const struct node_row *row)
{
        return (double) row->chips.chips - (double) row->chips.usable;
}

/* The larger is first. */
static double rank_of(const struct node_row *row, const char *sort)
{
        const struct node_figures *f = &row->page->figures;
        const struct {
                const char *word;
                double value;
        } ranks[] = { { "busy", f->busy },        { "used", f->used },
                      { "memory", f->memory },    { "temperature", f->temperature },
                      { "power", f->power },      { "health", ill(row) },
                      { "held", row->chips.held } };

        for (size_t i = 0; i < ARRAY_SIZE(ranks); i++)
                if (strcmp(ranks[i].word, sort) == 0)
                        return ranks[i].value;
        return 0; /* by name */
}

static int compare_rows(const void *a, const void *b, void *userdata)
{
        const struct node_row *x = a, *y = b;
        double p = rank_of(x, userdata), q = rank_of(y, userdata);

        if (isnan(p) != isnan(q))
                return isnan(p) - isnan(q);
        return isnan(p) || p == q ? strcmp(x->node, y->node) : (p < q) - (p > q);
}

/* Nodes that have chips. The names are the ledger's, for as long as it is not told of changes. */
static int read_ledger(struct top_nodes *t)
{
        const struct ledger *ledger = cluster_ledger(t->opened.cluster);
        const struct nodes_filter filter = { .resource = NULL };

        free(t->pages);
        free(t->rows);
        t->count = 0;
        t->pages = calloc(ledger->node_count + 1, sizeof(*t->pages));
        t->rows = calloc(ledger->node_count + 1, sizeof(*t->rows));
        if (t->pages == NULL || t->rows == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                const struct ledger_node *node = ledger->nodes[i];
                struct node_row *row = &t->rows[t->count];

                *row = (struct node_row){ .node = node->name, .page = &t->pages[t->count] };
                if (nodes_filter_takes(&filter, ledger, node))
                        nodes_filter_add(&filter, ledger, node, &row->chips);
                if (row->chips.chips > 0)
                        t->pages[t->count++].node = node->name;
        }
        return 0;
}

/* The names live on: nodes may go while their agents are asked. */
static int keep_names(struct top_nodes *t, char **ret_names)
{
        size_t bytes = 1;
        char *to;

        for (size_t i = 0; i < t->count; i++)
                bytes += strlen(t->rows[i].node) + 1;
        to = *ret_names = malloc(bytes);
        if (to == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < t->count; i++) {
                size_t size = strlen(t->rows[i].node) + 1;

                t->rows[i].node = t->pages[i].node = memcpy(to, t->rows[i].node, size);
                to += size;
        }
        return 0;
}

static void say_saved(struct top_nodes *t)
{
        for (size_t i = 0; i < t->count; i++) {
                t->pages[i].figures = NODE_FIGURES_NONE;
                (void) text_copy(t->pages[i].reason, sizeof(t->pages[i].reason),
                                 "a saved cluster has no agents to ask");
        }
}

struct sums {
        struct nodes_filter_totals chips;
        struct node_figures figures;
        size_t silent;
};

static struct sums sum_up(const struct top_nodes *t)
{
        struct sums ret = { .figures = NODE_FIGURES_NONE };

        for (size_t i = 0; i < t->count; i++) {
                const struct nodes_filter_totals *chips = &t->rows[i].chips;

                ret.chips.chips += chips->chips;
                ret.chips.usable += chips->usable;
                ret.chips.held += chips->held;
                ret.chips.leased += chips->leased;
                ret.chips.free += chips->free;
                ret.silent += t->rows[i].page->reason[0] != '\0';
                node_figures_add(&ret.figures, &t->rows[i].page->figures);
        }
        return ret;
}

static void add_row(struct table *table, const char *name, const struct nodes_filter_totals *chips,
                    const struct node_figures *f, const char *reason)
{
        table_add(table, TABLE_PLAIN, "%s", name);
        table_add(table, TABLE_PLAIN, "%u", chips->chips);
        table_add(table, TABLE_PLAIN, "%u", chips->held);
        table_add(table, chips->free > 0 ? TABLE_GOOD : TABLE_FAINT, "%u", chips->free);
        table_add(table, chips->usable < chips->chips ? TABLE_BAD : TABLE_FAINT, "%u",
                  chips->chips - chips->usable);
        top_number(table, f->busy * 100, " %");
        if (isnan(f->used))
                table_add(table, TABLE_FAINT, "%s", "");
        else
                table_add(table, TABLE_PLAIN, "%.0f/%.0f", f->used / GIB, f->memory / GIB);
        top_number(table, f->temperature, " C");
        top_number(table, f->power, " W");
        table_add(table, TABLE_WARN, "%s", reason);
}

static int print_table(const struct top_nodes *t, bool terminal)
{
        static const char *const headings[] = { "NODE", "CHIPS", "HELD",  "FREE",   "ILL", "BUSY",
                                                "GIB",  "TEMP",  "POWER", "REASON", NULL };
        struct sums sums = sum_up(t);
        struct table table;
        char silent[40] = "";

        if (terminal)
                fputs(TOP_CLEAR, stdout);
        listing_table(&t->options->listing, headings, &table);
        table.width = table_width(stdout);
        for (size_t i = 0; i < t->count; i++)
                add_row(&table, t->rows[i].node, &t->rows[i].chips, &t->rows[i].page->figures,
                        t->rows[i].page->reason);
        if (sums.silent > 0)
                (void) text_format(silent, sizeof(silent), "%zu of %zu silent", sums.silent, t->count);
        if (!t->options->listing.no_headers)
                add_row(&table, "TOTAL", &sums.chips, &sums.figures, silent);
        return listing_table_end(&t->options->listing, &table);
}

/* As of a device (top.c), and what it has of chips. */
static json_t *row_json(const struct nodes_filter_totals *chips, const struct node_figures *f)
{
        return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "chips",
                         (json_int_t) chips->chips, "usable", (json_int_t) chips->usable, "held",
                         (json_int_t) chips->held, "leased", (json_int_t) chips->leased, "free",
                         (json_int_t) chips->free, "utilizationRatio", top_real(f->busy), "memoryUsedBytes",
                         top_real(f->used), "memoryBytes", top_real(f->memory), "temperatureCelsius",
                         top_real(f->temperature), "powerWatts", top_real(f->power));
}

static int print_document(const struct top_nodes *t, bool yaml)
{
        struct sums sums = sum_up(t);
        json_t *nodes = json_array(), *document;
        int r;

        for (size_t i = 0; i < t->count; i++) {
                json_t *row = row_json(&t->rows[i].chips, &t->rows[i].page->figures);

                (void) json_object_set_new(row, "node", json_string(t->rows[i].node));
                (void) json_object_set_new(row, "reason", json_string(t->rows[i].page->reason));
                (void) json_array_append_new(nodes, row);
        }
        document = json_pack("{s:o, s:o}", "nodes", nodes, "total", row_json(&sums.chips, &sums.figures));
        r = document_print(document, yaml, JSON_REAL_PRECISION(15));
        json_decref(document);
        return r;
}

static int print_csv(const struct top_nodes *t)
{
        static const char *const names[] = { "node",
                                             "chips",
                                             "usable_chips",
                                             "held_chips",
                                             "leased_chips",
                                             "free_chips",
                                             "utilization_ratio",
                                             "memory_used_bytes",
                                             "memory_bytes",
                                             "temperature_celsius",
                                             "power_watts",
                                             "reason",
                                             NULL };
        struct listing_csv rows;
        struct csv *csv = &rows.csv;

        listing_csv(&t->options->listing, names, &rows);
        for (size_t i = 0; i < t->count; i++) {
                const struct node_figures *f = &t->rows[i].page->figures;

                csv_word(csv, t->rows[i].node);
                csv_count(csv, t->rows[i].chips.chips);
                csv_count(csv, t->rows[i].chips.usable);
                csv_count(csv, t->rows[i].chips.held);
                csv_count(csv, t->rows[i].chips.leased);
                csv_count(csv, t->rows[i].chips.free);
                csv_number(csv, f->busy);
                csv_number(csv, f->used);
                csv_number(csv, f->memory);
                csv_number(csv, f->temperature);
                csv_number(csv, f->power);
                csv_word(csv, t->rows[i].page->reason);
                csv_end_row(csv);
        }
        return listing_csv_end(&t->options->listing, &rows);
}

static int print_names(const struct top_nodes *t)
{
        for (size_t i = 0; i < t->count; i++)
                listing_name(t->rows[i].node);
        return 0;
}

static int print_rows(const struct top_nodes *t, bool terminal)
{
        enum listing_form form = listing_form(&t->options->listing);

        if (listing_is_document(form))
                return print_document(t, form == LISTING_YAML);
        if (form == LISTING_CSV)
                return print_csv(t);
        return form == LISTING_NAME ? print_names(t) : print_table(t, terminal);
}

static int look(struct top_nodes *t, bool terminal, struct err *err)
{
        CLEANUP(free_p) char *names = NULL;
        int r = read_ledger(t);

        if (r == 0)
                r = keep_names(t, &names);
        if (r == 0 && t->client == NULL)
                say_saved(t);
        else if (r == 0)
                r = agent_pages_ask(t->opened.loop, t->client, t->pages, t->count, err);
        if (r < 0)
                return r;
        if (t->count > 0)
                qsort_r(t->rows, t->count, sizeof(*t->rows), compare_rows, (void *) t->options->sort);
        r = print_rows(t, terminal);
        return r == 0 && fflush(stdout) == 0 ? 0 : err_set(err, -EIO, "the output could not be written");
}

static int on_key(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct top_nodes *t = userdata;
        char key = 0;

        (void) source, (void) events;
        t->ended = t->ended || read(fd, &key, 1) <= 0 || top_is_end(key);
        return 0;
}

/* Until the next look: the cluster is followed meanwhile. Return: false = it is the end. */
static bool wait_for_next(struct top_nodes *t)
{
        sd_event *loop = t->opened.loop;
        uint64_t now = clock_monotonic_usec(), end = now + t->options->interval_sec * UINT64_C(1000000);

        for (; now < end && !t->ended; now = clock_monotonic_usec())
                if (sd_event_run(loop, end - now) < 0 || sd_event_get_state(loop) == SD_EVENT_FINISHED)
                        return false;
        return !t->ended;
}

static int begin(struct top_nodes *t, struct err *err)
{
        const struct cluster_arguments arguments = { .store = t->options->store,
                                                     .kubeconfig = t->options->kubeconfig,
                                                     .placement = "packed",
                                                     .overflow = "none" };
        int r = cluster_arguments_open(&arguments, &t->opened, err);

        if (r == 0 && t->opened.is_cluster)
                r = kube_client_new(t->opened.loop, t->options->kubeconfig, &t->client, err);
        return r;
}

int top_nodes(const struct top_options *options, bool terminal, bool keys)
{
        struct top_nodes t = { .options = options };
        sd_event_source *keyboard = NULL;
        struct err err = { 0 };
        int r = begin(&t, &err);

        if (r == 0 && keys)
                (void) sd_event_add_io(t.opened.loop, &keyboard, STDIN_FILENO, EPOLLIN, on_key, &t);
        for (unsigned n = 1; r == 0 && !t.ended; n++) {
                r = look(&t, terminal, &err);
                if (r < 0 || (options->count != 0 && n >= options->count) || !wait_for_next(&t))
                        break;
        }
        if (r == 0 && t.opened.refusal.code != 0) {
                err = t.opened.refusal;
                r = err.code;
        }
        sd_event_source_disable_unref(keyboard);
        kube_client_free(t.client);
        cluster_arguments_close(&t.opened);
        free(t.pages);
        free(t.rows);
        return r == -ECANCELED ? EXIT_INTERRUPTED : options_end(&command_top_options, r, &err, stderr);
}
