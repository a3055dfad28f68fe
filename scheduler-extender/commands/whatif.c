/* remuda whatif: where pods would go on the cluster as it is, or as it could be. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/version.h"
#include "base/yaml/yaml_parse.h"
#include "cli/command/ask.h"
#include "cli/command/cluster_arguments.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/table.h"
#include "io/clock.h"
#include "scheduler-extender/explain/whatif.h"
#include "scheduler-extender/explain/whatif_question.h"

struct whatif_options {
        struct cluster_arguments cluster;
        struct ask_arguments ask;
        struct option_list add_nodes, remove_nodes, without_pods;
        const char *file, *output;
};

#define AT(member) offsetof(struct whatif_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "file", .letter = 'f', .type = OPTION_STRING, .offset = AT(file), .value = "FILE",
          .help = "Pods, TrainingJobs or a List of them (YAML, JSON; - = stdin)" },
        { .name = "add-node", .type = OPTION_LIST, .offset = AT(add_nodes), .value = "FILE|NEW=NODE",
          .help = "one more node: an object, or a copy of NODE" },
        { .name = "remove-node", .type = OPTION_LIST, .offset = AT(remove_nodes), .value = "NODE",
          .help = "without this node" },
        { .name = "without-pod", .type = OPTION_LIST, .offset = AT(without_pods), .value = "NS/NAME",
          .help = "without this pod" },
        ASK_ARGUMENTS_ROWS(struct whatif_options),
        CLUSTER_ARGUMENTS_ROWS(struct whatif_options),
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = AT(output), .value = "table|json",
          .default_ = "table", .help = "how to print" },
        { 0 },
};
/* clang-format on */

const struct option_program command_whatif_options = {
        .name = "remuda whatif",
        .summary = "Places pods on a copy of the cluster with the scheduler's own code; writes nothing.",
        .after = "See remuda-whatif(1).",
        .specs = specs,
};

static int read_objects(const char *path, json_t *list, struct err *err)
{
        CLEANUP(fclose_p) FILE *opened = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
        FILE *file = strcmp(path, "-") == 0 ? stdin : opened;
        CLEANUP(free_p) char *bytes = malloc(YAML_PARSE_MAX_BYTES + 1);
        json_t *documents = NULL;
        size_t size;
        int r;

        if (file == NULL)
                return err_set(err, -errno, "open '%s': %m", path);
        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory");
        size = fread(bytes, 1, YAML_PARSE_MAX_BYTES + 1, file);
        if (size > YAML_PARSE_MAX_BYTES)
                return err_set(err, -E2BIG, "'%s' is larger than 16 MiB", path);
        r = yaml_parse_all(bytes, size, &documents, err);
        if (r < 0)
                return err_wrap(err, r, "'%s'", path);
        whatif_question_add(documents, list);
        json_decref(documents);
        return 0;
}

static int build_request(const struct whatif_options *o, json_t *context, struct err *err)
{
        json_t *pods = json_array(), *add = json_array(), *remove = json_array(), *without = json_array();
        int r;

        (void) json_object_set_new(context, "pods", pods);
        (void) json_object_set_new(context, "addNodes", add);
        (void) json_object_set_new(context, "removeNodes", remove);
        (void) json_object_set_new(context, "withoutPods", without);
        r = read_objects(o->file, pods, err);
        for (size_t i = 0; i < o->add_nodes.count && r == 0; i++) {
                const char *text = o->add_nodes.items[i], *equals = strchr(text, '=');

                if (equals == NULL)
                        r = read_objects(text, add, err);
                else
                        (void) json_array_append_new(add,
                                                     json_pack("{s:s%, s:s}", "name", text,
                                                               (size_t) (equals - text), "like", equals + 1));
        }
        for (size_t i = 0; i < o->remove_nodes.count; i++)
                (void) json_array_append_new(remove, json_string(o->remove_nodes.items[i]));
        for (size_t i = 0; i < o->without_pods.count; i++)
                (void) json_array_append_new(without, json_string(o->without_pods.items[i]));
        return r;
}

static const char *text_of(const struct json_field *in, const char *name)
{
        const char *text = "";

        (void) json_field_string(in, name, &text, NULL);
        return text;
}

/* Why it waits, and what would help most cheaply. */
static void add_missing(struct table *table, const struct json_field *item)
{
        struct json_field missing = json_field_get(item, "missing"), first = json_field_at(&missing, 0);
        const char *remedy = text_of(&first, "message");

        if (text_of(item, "node")[0] != '\0')
                table_add(table, TABLE_FAINT, "%s", text_of(item, "message"));
        else
                table_add(table, TABLE_PLAIN, "%s%s%s", text_of(item, "message"),
                          remedy[0] != '\0' ? "; " : "", remedy);
}

static void print_table(const json_t *answer)
{
        static const char *const headings[] = { "POD", "NODE", "WHEN", "WHY", NULL };
        struct json_field root = json_field_root(answer), placements = json_field_get(&root, "placements");
        struct table table = { 0 };

        table_line(stdout, "asked: %s", text_of(&root, "asked"));
        table_begin(&table, headings);
        for (size_t i = 0; i < json_field_count(&placements); i++) {
                struct json_field placement = json_field_at(&placements, i), *item = &placement;
                bool placed = text_of(item, "node")[0] != '\0';

                table_add(&table, TABLE_PLAIN, "%s", text_of(item, "pod"));
                table_add(&table, placed ? TABLE_GOOD : TABLE_WARN, "%s",
                          placed ? text_of(item, "node") : "none");
                table_add(&table, TABLE_PLAIN, "%s",
                          text_of(item, "when")[0] != '\0' ? text_of(item, "when") : "no known time");
                add_missing(&table, item);
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

/* The pods of one job have the same one, one after the other. */
static void tell_remarks(const json_t *answer)
{
        struct json_field root = json_field_root(answer), placements = json_field_get(&root, "placements");
        const char *last = "";

        for (size_t i = 0; i < json_field_count(&placements); i++) {
                struct json_field item = json_field_at(&placements, i);
                const char *remark = text_of(&item, "remark");

                if (remark[0] != '\0' && strcmp(remark, last) != 0)
                        table_line(stderr, "remuda whatif: %s", remark);
                last = remark;
        }
}

/* The same from the store, by the options of the extender as they are given here. */
static int work_out(const struct whatif_options *o, const json_t *context, json_t **ret, struct err *err)
{
        struct cluster_arguments_opened opened = { 0 };
        int r = cluster_arguments_open(&o->cluster, &opened, err);

        if (r == 0)
                r = whatif(opened.cluster, context, clock_realtime_usec(), ret, err);
        cluster_arguments_close(&opened);
        return r;
}

static int run(const struct whatif_options *o, struct err *err)
{
        json_t *context = json_object(), *answer = NULL;
        struct ask_question question = { .path = "/v1/whatif", .body = context, .wanted = "placements" };
        char who[ASK_WHO_BYTES];
        int r = build_request(o, context, err);

        if (r == 0)
                r = ask_extender(&o->ask, &o->cluster, &question, &answer, who, err);
        if (r == ASK_E_STORE)
                r = work_out(o, context, &answer, err);
        if (r == 0)
                (void) json_object_set_new(answer, "asked", json_string(who));
        if (r == 0 && strcmp(o->output, "json") == 0)
                r = document_print(answer, false, JSON_ENSURE_ASCII);
        else if (r == 0)
                print_table(answer);
        if (r == 0)
                tell_remarks(answer);
        json_decref(context);
        json_decref(answer);
        return r;
}

int command_whatif(int argc, char **argv)
{
        struct whatif_options options = { 0 };
        struct err err = { 0 };
        size_t operands;
        int r = options_start(&command_whatif_options, REMUDA_VERSION, argc, argv, &options, &operands,
                              stdout, stderr);

        if (r >= 0)
                return r;
        if (options.file == NULL) {
                fprintf(stderr, "remuda whatif: -f FILE is needed (- = standard input); see --help\n");
                return EXIT_USAGE;
        }
        r = run(&options, &err);
        return options_end(&command_whatif_options, r, &err, stderr);
}
