/* remuda nodes: the cluster's nodes as the scheduler sees them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/json/json_field.h"
#include "base/version.h"
#include "cli/command/cluster_arguments.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/listing.h"
#include "cli/command/watching.h"
#include "cli/nodes_filter.h"
#include "io/clock.h"
#include "scheduler-extender/commands/suggest_classes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

struct nodes_options {
        struct cluster_arguments cluster;
        struct listing_arguments listing;
        struct nodes_filter filter;
        const char *trace_nodes, *trace_pods;
        double load;
        bool suggest_classes;
};

/* clang-format off */
static const struct option_spec specs[] = {
        CLUSTER_ARGUMENTS_ROWS(struct nodes_options),
        { .name = "resource", .type = OPTION_STRING, .offset = offsetof(struct nodes_options, filter.resource),
          .value = "NAME", .help = "nodes that have it, and their groups of it alone" },
        { .name = "free", .type = OPTION_UNSIGNED, .offset = offsetof(struct nodes_options, filter.free_chips),
          .value = "N", .help = "nodes with at least N free chips of one resource" },
        { .name = "selector", .letter = 'l', .type = OPTION_STRING,
          .offset = offsetof(struct nodes_options, filter.selector), .value = "LABELS",
          .help = "nodes with these labels: A=B, A!=B, 'A in (B,C)', 'A notin (B)', A, '!A'" },
        { .name = "cpu", .type = OPTION_BOOL, .offset = offsetof(struct nodes_options, filter.cpu),
          .help = "CPU groups, too" },
        { .name = "suggest-classes", .type = OPTION_BOOL, .offset = offsetof(struct nodes_options, suggest_classes),
          .help = "the split into single and multi that waits least (simulated)" },
        { .name = "nodes", .type = OPTION_STRING, .offset = offsetof(struct nodes_options, trace_nodes), .value = "CSV",
          .help = "... of a trace instead of the store: its nodes" },
        { .name = "pods", .type = OPTION_STRING, .offset = offsetof(struct nodes_options, trace_pods), .value = "CSV",
          .help = "... and its pods" },
        { .name = "load", .type = OPTION_DOUBLE, .offset = offsetof(struct nodes_options, load), .value = "F",
          .default_ = "0", .help = "... arrivals so close that F of all chips is asked for; 0 = as they were" },
        LISTING_ARGUMENTS_ROWS(struct nodes_options, LISTING_FORMS),
        LISTING_WATCH_ROWS(struct nodes_options),
        { 0 },
};
/* clang-format on */

const struct option_program command_nodes_options = {
        .name = "remuda nodes",
        .summary = "Shows the nodes of a cluster: their class, pool, chips, and what of them is free.",
        .after = "A dir: store may be filled by `kubectl get nodes,pods,nodeaccelerators -A -o json`.",
        .specs = specs,
};

static int compare_names(const void *a, const void *b)
{
        return strcmp((*(struct ledger_node *const *) a)->name, (*(struct ledger_node *const *) b)->name);
}

static struct ledger_node **sorted_nodes(const struct ledger *ledger)
{
        struct ledger_node **nodes = malloc((ledger->node_count + 1) * sizeof(struct ledger_node *));

        if (nodes == NULL)
                return NULL;
        if (ledger->node_count > 0)
                memcpy(nodes, ledger->nodes, ledger->node_count * sizeof(struct ledger_node *));
        qsort(nodes, ledger->node_count, sizeof(struct ledger_node *), compare_names);
        return nodes;
}

static json_t *group_json(const struct ledger *ledger, const struct ledger_group *g)
{
        const struct symbols *s = &ledger->symbols;

        json_t *ret = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
                                symbols_name(s, g->name), "vendor", symbols_name(s, g->vendor), "runtime",
                                symbols_name(s, g->runtime), "model", symbols_name(s, g->model), "resource",
                                symbols_name(s, g->resource), "total", (json_int_t) g->total, "healthy",
                                (json_int_t) g->usable, "held", (json_int_t) g->held, "leased",
                                (json_int_t) g->leased, "free", (json_int_t) ledger_group_open(g),
                                "memoryBytes", (json_int_t) g->memory_bytes);

        ledger_speeds_put(ret, &g->figures);
        return ret;
}

static json_t *node_json(const struct ledger *ledger, const struct ledger_node *node)
{
        json_t *groups = json_array(), *pods = json_array();

        for (uint32_t i = 0; i < node->group_count; i++)
                (void) json_array_append_new(groups, group_json(ledger, &node->groups[i]));
        for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                (void) json_array_append_new(pods, json_pack("{s:s, s:i}", "pod", pod->key, "chips",
                                                             (int) request_chips(&pod->request)));
        return json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:b, s:o, s:o}}", "apiVersion",
                         "remuda.dev/v1alpha1", "kind", "NodeAccelerators", "metadata", "name", node->name,
                         "status", "nodeClass", node_class_name((enum node_class) node->node_class), "pool",
                         node->pool == 0 ? "regular" : symbols_name(&ledger->symbols, node->pool),
                         "hasInventory", node->has_inventory, "groups", groups, "pods", pods);
}

static int print_json(const struct nodes_filter *filter, const struct ledger *ledger,
                      struct ledger_node *const *nodes, bool yaml)
{
        json_t *items = json_array(), *list;
        int r;

        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (nodes_filter_takes(filter, ledger, nodes[i]))
                        (void) json_array_append_new(items, node_json(ledger, nodes[i]));
        list = json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", items);
        r = document_print(list, yaml, 0);
        json_decref(list);
        return r;
}

static const char *pool_name(const struct ledger *ledger, const struct ledger_node *node)
{
        return node->pool == 0 ? "regular" : symbols_name(&ledger->symbols, node->pool);
}

static void add_more(struct table *table, const struct ledger *ledger, const struct ledger_group *g)
{
        const struct symbols *s = &ledger->symbols;

        table_add(table, TABLE_PLAIN, "%s", g == NULL ? "" : symbols_name(s, g->name));
        table_add(table, TABLE_PLAIN, "%s", g == NULL ? "" : symbols_name(s, g->vendor));
        table_add(table, TABLE_PLAIN, "%s", g == NULL ? "" : symbols_name(s, g->runtime));
        if (g != NULL && g->memory_bytes > 0)
                table_add(table, TABLE_PLAIN, "%.0f GiB", (double) g->memory_bytes / (double) (1 << 30));
        else
                table_add(table, TABLE_PLAIN, "%s", "");
}

static void add_row(struct table *table, const struct ledger *ledger, const struct ledger_node *node,
                    const struct ledger_group *g, bool first)
{
        const struct symbols *s = &ledger->symbols;
        uint32_t free_chips = g == NULL ? 0 : ledger_group_open(g);

        table_add(table, TABLE_PLAIN, "%s", first ? node->name : "");
        table_add(table, TABLE_PLAIN, "%s", first ? node_class_name((enum node_class) node->node_class) : "");
        table_add(table, node->reserved ? TABLE_WARN : TABLE_PLAIN, "%s",
                  first ? pool_name(ledger, node) : "");
        table_add(table, TABLE_PLAIN, "%s", g == NULL ? "" : symbols_name(s, g->resource));
        table_add(table, TABLE_FAINT, "%s", g == NULL ? "" : symbols_name(s, g->model));
        table_add(table, TABLE_PLAIN, "%u", g == NULL ? 0 : g->total);
        table_add(table, g != NULL && g->usable < g->total ? TABLE_BAD : TABLE_PLAIN, "%u",
                  g == NULL ? 0 : g->usable);
        table_add(table, TABLE_PLAIN, "%u", g == NULL ? 0 : g->held);
        table_add(table, TABLE_PLAIN, "%u", g == NULL ? 0 : g->leased);
        table_add(table, free_chips > 0 ? TABLE_GOOD : TABLE_FAINT, "%u", free_chips);
}

static void print_name(void *userdata, const struct ledger *ledger, const struct ledger_node *node,
                       const struct ledger_group *g, bool first)
{
        (void) userdata, (void) ledger, (void) g;
        if (first)
                listing_name(node->name);
}

static void print_row(void *userdata, const struct ledger *ledger, const struct ledger_node *node,
                      const struct ledger_group *g, bool first)
{
        add_row(userdata, ledger, node, g, first);
}

static void print_wide_row(void *userdata, const struct ledger *ledger, const struct ledger_node *node,
                           const struct ledger_group *g, bool first)
{
        add_row(userdata, ledger, node, g, first);
        add_more(userdata, ledger, g);
}

static const char *const csv_names[] = {
        "node",       "class",        "pool",       "group",        "vendor",
        "runtime",    "model",        "resource",   "chips",        "usable_chips",
        "held_chips", "leased_chips", "free_chips", "memory_bytes", NULL,
};

static void print_csv_row(void *userdata, const struct ledger *ledger, const struct ledger_node *node,
                          const struct ledger_group *g, bool first)
{
        const struct symbols *s = &ledger->symbols;
        struct csv *csv = userdata;

        (void) first; /* every row says all */
        csv_word(csv, node->name);
        csv_word(csv, node_class_name((enum node_class) node->node_class));
        csv_word(csv, pool_name(ledger, node));
        csv_word(csv, g == NULL ? NULL : symbols_name(s, g->name));
        csv_word(csv, g == NULL ? NULL : symbols_name(s, g->vendor));
        csv_word(csv, g == NULL ? NULL : symbols_name(s, g->runtime));
        csv_word(csv, g == NULL ? NULL : symbols_name(s, g->model));
        csv_word(csv, g == NULL ? NULL : symbols_name(s, g->resource));
        csv_count(csv, g == NULL ? 0 : g->total);
        csv_count(csv, g == NULL ? 0 : g->usable);
        csv_count(csv, g == NULL ? 0 : g->held);
        csv_count(csv, g == NULL ? 0 : g->leased);
        csv_count(csv, g == NULL ? 0 : ledger_group_open(g));
        csv_known(csv, g == NULL ? 0 : g->memory_bytes);
        csv_end_row(csv);
}

typedef void print_group(void *userdata, const struct ledger *ledger, const struct ledger_node *node,
                         const struct ledger_group *g, bool first);

static void print_node(const struct nodes_options *options, const struct ledger *ledger,
                       const struct ledger_node *node, print_group *print, void *userdata)
{
        bool first = true, repeats = options->listing.watching != NULL; /* a row comes alone there */

        for (uint32_t g = 0; g < node->group_count; g++) {
                if (!nodes_filter_takes_group(&options->filter, ledger, node, &node->groups[g]))
                        continue;
                print(userdata, ledger, node, &node->groups[g], first || repeats);
                first = false;
        }
        if (first) /* a node without groups to list is a row, too */
                print(userdata, ledger, node, NULL, true);
}

static struct nodes_filter_totals each_group(const struct nodes_options *options, const struct ledger *ledger,
                                             struct ledger_node *const *nodes, print_group *print,
                                             void *userdata)
{
        struct nodes_filter_totals totals = { 0 };

        for (uint32_t i = 0; i < ledger->node_count; i++) {
                if (!nodes_filter_takes(&options->filter, ledger, nodes[i]))
                        continue;
                print_node(options, ledger, nodes[i], print, userdata);
                nodes_filter_add(&options->filter, ledger, nodes[i], &totals);
        }
        return totals;
}

static void print_totals(const struct nodes_filter_totals *t)
{
        table_line(stdout, "%u node%s: %u chips, %u usable, %u held, %u leased, %u free", t->nodes,
                   t->nodes == 1 ? "" : "s", t->chips, t->usable, t->held, t->leased, t->free);
}

static int print_table(const struct nodes_options *options, const struct ledger *ledger,
                       struct ledger_node *const *nodes)
{
        static const char *const plain[] = { "NODE",   "CLASS", "POOL",   "RESOURCE", "MODEL", "CHIPS",
                                             "USABLE", "HELD",  "LEASED", "FREE",     NULL };
        static const char *const more[] = { "NODE",  "CLASS",  "POOL",    "RESOURCE", "MODEL",
                                            "CHIPS", "USABLE", "HELD",    "LEASED",   "FREE",
                                            "GROUP", "VENDOR", "RUNTIME", "MEMORY",   NULL };
        bool wide = listing_form(&options->listing) == LISTING_WIDE;
        struct nodes_filter_totals totals;
        struct table table;
        int r;

        listing_table(&options->listing, wide ? more : plain, &table);
        totals = each_group(options, ledger, nodes, wide ? print_wide_row : print_row, &table);
        r = listing_table_end(&options->listing, &table);
        if (r == 0 && !options->listing.no_headers && options->listing.watching == NULL)
                print_totals(&totals);
        return r;
}

static int print_csv(const struct nodes_options *options, const struct ledger *ledger,
                     struct ledger_node *const *nodes)
{
        struct listing_csv rows;

        listing_csv(&options->listing, csv_names, &rows);
        (void) each_group(options, ledger, nodes, print_csv_row, &rows.csv);
        return listing_csv_end(&options->listing, &rows);
}

static int print_objects(const struct nodes_options *options, const struct ledger *ledger,
                         struct ledger_node *const *nodes)
{
        int r = 0;

        for (uint32_t i = 0; i < ledger->node_count && r == 0; i++)
                if (nodes_filter_takes(&options->filter, ledger, nodes[i]))
                        r = listing_object(&options->listing, nodes[i]->name, nodes[i]->name,
                                           node_json(ledger, nodes[i]), 0);
        return r < 0 ? r : listing_objects_end(&options->listing);
}

static int print_nodes(const struct nodes_options *options, const struct ledger *ledger)
{
        CLEANUP(free_p) struct ledger_node **nodes = sorted_nodes(ledger);
        enum listing_form form = listing_form(&options->listing);

        if (nodes == NULL)
                return -ENOMEM;
        if (options->listing.watching != NULL && (listing_is_document(form) || form == LISTING_NAME))
                return print_objects(options, ledger, nodes);
        if (listing_is_document(form))
                return print_json(&options->filter, ledger, nodes, form == LISTING_YAML);
        if (form == LISTING_CSV)
                return print_csv(options, ledger, nodes);
        if (form != LISTING_NAME)
                return print_table(options, ledger, nodes);
        (void) each_group(options, ledger, nodes, print_name, NULL);
        return 0;
}

static void print_names(const struct json_field *resource, const char *what)
{
        struct json_field names = json_field_get(resource, what);
        size_t count = json_field_count(&names);

        printf("  %s: %zu nodes", what, count);
        for (size_t i = 0; i < count && i < 8; i++)
                printf("%s%s", i == 0 ? " (" : ", ", json_string_value(json_field_at(&names, i).value));
        printf("%s\n", count == 0 ? "" : count > 8 ? ", ...)" : ")");
}

static void print_suggestion(const struct json_field *resource)
{
        double present = NAN, best = NAN, gain = 0;
        const char *name = "";
        int64_t jobs = 0, nodes = 0;

        (void) json_field_string(resource, "resource", &name, NULL);
        (void) json_field_int64(resource, "jobs", 0, INT64_MAX, &jobs, NULL);
        (void) json_field_int64(resource, "nodes", 0, INT64_MAX, &nodes, NULL);
        (void) json_field_double(resource, "presentWaitSeconds", 0, HUGE_VAL, &present, NULL);
        (void) json_field_double(resource, "waitSeconds", 0, HUGE_VAL, &best, NULL);
        (void) json_field_double(resource, "gainPercent", -HUGE_VAL, HUGE_VAL, &gain, NULL);
        printf("%s, %lld jobs on %lld nodes\n", name, (long long) jobs, (long long) nodes);
        if (isnan(best)) {
                printf("  no split serves every job\n");
                return;
        }
        print_names(resource, "single");
        print_names(resource, "multi");
        if (isnan(present))
                printf("  mean wait %.1f s (simulated); with the classes as they are some jobs wait for "
                       "ever\n",
                       best);
        else if (gain <= 0)
                printf("  mean wait %.1f s, and %.1f s with the classes as they are: leave them "
                       "(simulated)\n",
                       best, present);
        else
                printf("  mean wait %.1f s instead of %.1f s with the classes as they are: %.1f %% less "
                       "(simulated)\n",
                       best, present, gain);
}

static int print_suggestions(const struct nodes_options *options, json_t *suggestions)
{
        struct json_field root = json_field_root(suggestions), list = json_field_get(&root, "resources");

        if (listing_is_document(listing_form(&options->listing)))
                return document_print(suggestions, listing_form(&options->listing) == LISTING_YAML, 0);
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field resource = json_field_at(&list, i);

                print_suggestion(&resource);
        }
        return 0;
}

static int suggest(const struct nodes_options *options, struct cluster *cluster, struct err *err)
{
        json_t *suggestions = NULL;
        int r;

        if (options->trace_nodes != NULL)
                r = suggest_classes_of_trace(options->trace_nodes, options->trace_pods, options->load,
                                             &suggestions, err);
        else
                r = suggest_classes_of_ledger(cluster_ledger(cluster), clock_realtime_usec(), options->load,
                                              &suggestions, err);
        if (r == 0)
                r = print_suggestions(options, suggestions);
        json_decref(suggestions);
        return r;
}

/* Also reads the selector. */
static int check_options(struct nodes_options *options, struct err *err)
{
        const struct nodes_filter *filter = &options->filter;

        if (!options->suggest_classes)
                return nodes_filter_begin(&options->filter, err);
        if (options->listing.watch)
                return err_set(err, -EINVAL, "--watch is of what is listed: not with --suggest-classes");
        if (filter->resource != NULL || filter->selector != NULL || filter->free_chips > 0 || filter->cpu)
                return err_set(err, -EINVAL,
                               "--resource, --free, --selector and --cpu choose what is listed: not with "
                               "--suggest-classes");
        return listing_check(&options->listing, "--suggest-classes", "table|json|yaml", err);
}

struct nodes_watch {
        const struct nodes_options *options;
        struct cluster *cluster;
};

static int look(void *userdata, struct err *err)
{
        const struct nodes_watch *w = userdata;
        int r = print_nodes(w->options, cluster_ledger(w->cluster));

        return r < 0 ? err_set(err, r, "no memory for the list") : 0;
}

static int watch(struct nodes_options *options, struct cluster_arguments_opened *opened)
{
        static const char *const keys[] = { "NODE", "RESOURCE", "MODEL", "GROUP", "node", "group", NULL };
        static const char *const ageing[] = { NULL };
        struct listing_watch rows = { .keys = keys, .ageing = ageing };
        struct nodes_watch w = { .options = options, .cluster = opened->cluster };
        struct watching watching = { .program = &command_nodes_options,
                                     .listing = &options->listing,
                                     .look = look,
                                     .userdata = &w,
                                     .rows = &rows,
                                     .loop = opened->loop };
        int r;

        opened->watching = &watching;
        r = watching_run(&watching);
        opened->watching = NULL;
        return r;
}

int command_nodes(int argc, char **argv)
{
        struct nodes_options options = { 0 };
        struct cluster_arguments_opened opened = { 0 };
        struct err err = { 0 };
        size_t operands;
        int r = options_start(&command_nodes_options, REMUDA_VERSION, argc, argv, &options, &operands, stdout,
                              stderr);

        if (r >= 0)
                return r;
        if ((options.trace_nodes != NULL) != (options.trace_pods != NULL) ||
            (options.trace_nodes != NULL && !options.suggest_classes)) {
                fprintf(stderr,
                        "remuda nodes: --nodes CSV and --pods CSV go together, with --suggest-classes\n");
                return EXIT_USAGE;
        }
        r = check_options(&options, &err);
        if (r == 0 && options.trace_nodes == NULL)
                r = cluster_arguments_open(&options.cluster, &opened, &err);
        if (r == 0 && options.suggest_classes)
                r = suggest(&options, opened.cluster, &err);
        else if (r == 0 && options.listing.watch)
                r = watch(&options, &opened);
        else if (r == 0)
                r = print_nodes(&options, cluster_ledger(opened.cluster));
        cluster_arguments_close(&opened);
        nodes_filter_end(&options.filter);
        return r > 0 ? r : options_end(&command_nodes_options, r, &err, stderr);
}
