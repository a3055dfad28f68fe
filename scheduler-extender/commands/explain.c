/* remuda explain: why a pod runs where it does, or waits, and what would help. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/cluster_arguments.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/table.h"
#include "io/clock.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/ledger/ledger_pods.h"

struct explain_options {
        struct cluster_arguments cluster;
        const char *namespace_, *output;
        bool reasons;
};

/* clang-format off */
static const struct option_spec specs[] = {
        CLUSTER_ARGUMENTS_ROWS(struct explain_options),
        { .name = "namespace", .letter = 'n', .type = OPTION_STRING,
          .offset = offsetof(struct explain_options, namespace_), .value = "NS", .default_ = "default",
          .help = "of the pod" },
        { .name = "reasons", .type = OPTION_BOOL, .offset = offsetof(struct explain_options, reasons),
          .help = "list every reason word, and what to do about it" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct explain_options, output),
          .value = "table|json", .default_ = "table", .help = "how to print" },
        { 0 },
};
/* clang-format on */

static const struct option_program program = {
        .name = "remuda explain",
        .operands = "pod/NAME",
        .operands_max = 1,
        .summary = "Says for every node why it takes a pod or does not, and the smallest changes that would "
                   "help.",
        .after = "Every remedy was tried on the ledger before it is offered. See remuda-explain(1).",
        .specs = specs,
};

static int print_reasons(bool as_json)
{
        json_t *list = json_array();

        for (size_t i = REASON_NONE + 1; i < REASON_COUNT; i++) {
                const struct reason_text *reason = reason_text((enum reason) i);

                if (!as_json)
                        printf("%s\n    %s\n    what helps: %s\n", reason->message,
                               reason->unresolvable ? "never fits there as it is (FailedAndUnresolvableNodes)"
                                                    : "may fit later (FailedNodes)",
                               reason->remedy);
                (void) json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s}", "word", reason->word,
                                                             "message", reason->message, "unresolvable",
                                                             reason->unresolvable, "remedy", reason->remedy));
        }
        if (as_json)
                (void) document_print(list, false, 0);
        json_decref(list);
        return EXIT_DONE;
}

static const char *text_of(const struct json_field *in, const char *name)
{
        const char *text = "";

        (void) json_field_string(in, name, &text, NULL);
        return text;
}

static long long number_of(const struct json_field *in, const char *name)
{
        int64_t number = 0;

        (void) json_field_int64(in, name, 0, INT64_MAX, &number, NULL);
        return number;
}

static enum table_colour colour_of(const char *verdict)
{
        return strcmp(verdict, "fits") == 0    ? TABLE_GOOD
               : strcmp(verdict, "waits") == 0 ? TABLE_WARN
                                               : TABLE_FAINT;
}

/* of each batch of 64 (weighted, speeds are measured): cuda H100 41, cuda V100 23 */
static void print_shares(const struct json_field *shares)
{
        struct json_field chips = json_field_get(shares, "chips");

        if (shares->value == NULL)
                return;
        printf("its chips' share of each batch of %lld (%s; speeds are %s):", number_of(shares, "batch"),
               text_of(shares, "shards"), text_of(shares, "source"));
        for (size_t i = 0; i < json_field_count(&chips); i++) {
                struct json_field row = json_field_at(&chips, i);

                printf("%s %s %s %lld", i == 0 ? "" : ",", text_of(&row, "runtime"), text_of(&row, "model"),
                       number_of(&row, "batch"));
        }
        printf("\n");
}

static void print_table(const json_t *value)
{
        static const char *const headings[] = { "NODE", "VERDICT", "REASON", "IN NUMBERS", NULL };
        struct json_field root = json_field_root(value), *answer = &root,
                          shares = json_field_get(answer, "shares"), nodes = json_field_get(answer, "nodes"),
                          remedies = json_field_get(answer, "remedies");
        struct table table = { 0 };

        printf("pod %s asks for %lld chip(s): %s%s%s\n", text_of(answer, "pod"), number_of(answer, "chips"),
               text_of(answer, "verdict"), text_of(answer, "boundTo")[0] != '\0' ? ", it runs on " : "",
               text_of(answer, "boundTo"));
        if (text_of(answer, "note")[0] != '\0')
                printf("note: %s\n", text_of(answer, "note"));
        print_shares(&shares);
        printf("\n");
        table_begin(&table, headings);
        for (size_t i = 0; i < json_field_count(&nodes); i++) {
                struct json_field node = json_field_at(&nodes, i), *item = &node;

                table_add(&table, TABLE_PLAIN, "%s", text_of(item, "node"));
                table_add(&table, colour_of(text_of(item, "verdict")), "%s", text_of(item, "verdict"));
                table_add(&table, TABLE_PLAIN, "%s", text_of(item, "reason"));
                table_add(&table, TABLE_FAINT, "%s", text_of(item, "message"));
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
        if (json_field_count(&remedies) > 0)
                printf("\nwhat would help, smallest first (each tried on the ledger):\n");
        for (size_t i = 0; i < json_field_count(&remedies); i++) {
                struct json_field remedy = json_field_at(&remedies, i);

                printf("  %zu. %s\n", i + 1, text_of(&remedy, "message"));
        }
}

static int explain(const struct explain_options *options, const char *operand, struct err *err)
{
        const char *name = text_starts_with(operand, "pod/") ? operand + 4 : operand;
        struct cluster_arguments_opened opened = { 0 };
        const struct ledger_pod *pod;
        json_t *answer = NULL;
        int r = cluster_arguments_open(&options->cluster, &opened, err);

        if (r == 0) {
                pod = ledger_pods_find(cluster_ledger(opened.cluster), options->namespace_, name);
                if (pod == NULL)
                        r = err_set(err, -ENOENT,
                                    "there is no pod '%s' in namespace '%s' (-n NS chooses another)", name,
                                    options->namespace_);
                else if ((answer = explain_pod(opened.cluster, pod, clock_realtime_usec(),
                                               EXPLAIN_ALL, err)) == NULL)
                        r = -ENOMEM;
        }
        if (r == 0 && strcmp(options->output, "json") == 0)
                r = document_print(answer, false, 0);
        else if (r == 0)
                print_table(answer);
        json_decref(answer);
        cluster_arguments_close(&opened);
        return r;
}

int command_explain(int argc, char **argv)
{
        struct explain_options options;
        struct err err = { 0 };
        size_t operands;
        int r = options_start(&program, REMUDA_VERSION, argc, argv, &options, &operands, stdout, stderr);

        if (r >= 0)
                return r;
        if (options.reasons)
                return print_reasons(strcmp(options.output, "json") == 0);
        if (operands != 1) {
                fprintf(stderr, "remuda explain: pod/NAME is needed (or --reasons); see --help\n");
                return EXIT_USAGE;
        }
        r = explain(&options, argv[1], &err);
        return options_end(&program, r, &err, stderr);
}
