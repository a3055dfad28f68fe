/* remuda explain: why a pod or a job runs where it does, or waits, and what would help. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/agent_client.h"
#include "cli/command/ask.h"
#include "cli/command/cluster_arguments.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/table.h"
#include "io/clock.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/explain/explain_job.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

struct explain_options {
        struct cluster_arguments cluster;
        struct ask_arguments ask;
        const char *namespace_, *output;
        bool reasons, all;
};

/* clang-format off */
static const struct option_spec specs[] = {
        ASK_ARGUMENTS_ROWS(struct explain_options),
        CLUSTER_ARGUMENTS_ROWS(struct explain_options),
        { .name = "namespace", .letter = 'n', .type = OPTION_STRING,
          .offset = offsetof(struct explain_options, namespace_), .value = "NS", .default_ = "default",
          .help = "where NAME says none" },
        { .name = "all", .letter = 'a', .type = OPTION_BOOL, .offset = offsetof(struct explain_options, all),
          .help = "a row for each node, not the nearest three of each reason" },
        { .name = "reasons", .type = OPTION_BOOL, .offset = offsetof(struct explain_options, reasons),
          .help = "list every reason word, and what to do about it" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct explain_options, output),
          .value = "table|json", .default_ = "table", .help = "how to print" },
        { 0 },
};
/* clang-format on */

const struct option_program command_explain_options = {
        .name = "remuda explain",
        .operands = "pod/NAME | job/NAME | group/NAME | NAMESPACE/NAME",
        .operands_max = 1,
        .summary = "Says why nodes do not take a pod or a job, and what would help at what price.",
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
        CLEANUP(text_free) struct text line = { 0 };

        if (shares->value == NULL)
                return;
        text_printf(&line,
                    "its chips' share of each batch of %lld (%s; speeds are %s):", number_of(shares, "batch"),
                    text_of(shares, "shards"), text_of(shares, "source"));
        for (size_t i = 0; i < json_field_count(&chips); i++) {
                struct json_field row = json_field_at(&chips, i);

                text_printf(&line, "%s %s %s %lld", i == 0 ? "" : ",", text_of(&row, "runtime"),
                            text_of(&row, "model"), number_of(&row, "batch"));
        }
        table_line(stdout, "%s", line.data == NULL ? "" : line.data);
}

static void print_nodes(const struct json_field *nodes)
{
        static const char *const headings[] = { "NODE", "VERDICT", "REASON", "IN NUMBERS", NULL };
        struct table table = { 0 };

        printf("\n");
        table_begin(&table, headings);
        for (size_t i = 0; i < json_field_count(nodes); i++) {
                struct json_field node = json_field_at(nodes, i), *item = &node;

                table_add(&table, TABLE_PLAIN, "%s", text_of(item, "node"));
                table_add(&table, colour_of(text_of(item, "verdict")), "%s", text_of(item, "verdict"));
                table_add(&table, TABLE_PLAIN, "%s", text_of(item, "reason"));
                table_add(&table, TABLE_FAINT, "%s", text_of(item, "message"));
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

/* A line an example; the first has what the group has in common. */
static void print_reasons_found(const struct json_field *reasons)
{
        static const char *const headings[] = { "NODES", "VERDICT", "REASON", "NEAREST", "IN NUMBERS", NULL };
        struct table table = { 0 };

        printf("\n");
        table_begin(&table, headings);
        for (size_t i = 0; i < json_field_count(reasons); i++) {
                struct json_field reason = json_field_at(reasons, i), *item = &reason,
                                  examples = json_field_get(item, "examples");

                for (size_t e = 0; e < json_field_count(&examples); e++) {
                        struct json_field example = json_field_at(&examples, e);

                        table_add(&table, TABLE_PLAIN, e == 0 ? "%lld" : " ", number_of(item, "count"));
                        table_add(&table, colour_of(text_of(item, "verdict")), "%s",
                                  e == 0 ? text_of(item, "verdict") : " ");
                        table_add(&table, TABLE_PLAIN, "%s", e == 0 ? text_of(item, "word") : " ");
                        table_add(&table, TABLE_PLAIN, "%s", text_of(&example, "node"));
                        table_add(&table, TABLE_FAINT, "%s", text_of(&example, "message"));
                }
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

static void print_remedies(const struct json_field *remedies)
{
        if (json_field_count(remedies) > 0)
                printf("\nwhat would help, cheapest first (each was tried on the ledger, or says that not; "
                       "to "
                       "ask for less is last):\n");
        for (size_t i = 0; i < json_field_count(remedies); i++) {
                struct json_field remedy = json_field_at(remedies, i);
                const char *untried = text_of(&remedy, "untried");

                table_line(stdout, "  %zu. %s (costs %s; takes effect %s%s%s)", i + 1,
                           text_of(&remedy, "message"), text_of(&remedy, "who"),
                           text_of(&remedy, "takesEffect"),
                           untried[0] == '\0' ? "" : "; not tried: ", untried);
        }
}

static void print_plan(const struct json_field *plan)
{
        static const char *const headings[] = { "PLAN", "PLACES", "CHIPS", "OF THEM LEASED", NULL };
        struct table table = { 0 };

        printf("\n");
        table_begin(&table, headings);
        for (size_t i = 0; i < json_field_count(plan); i++) {
                struct json_field row = json_field_at(plan, i);

                table_add(&table, TABLE_PLAIN, "%s", text_of(&row, "node"));
                table_add(&table, TABLE_PLAIN, "%lld", number_of(&row, "places"));
                table_add(&table, TABLE_PLAIN, "%lld", number_of(&row, "chips"));
                table_add(&table, TABLE_PLAIN, "%lld", number_of(&row, "leased"));
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

static void print_members(const struct json_field *members)
{
        static const char *const headings[] = { "PODS", "STATE", "NODE", "CHIPS", "NAMES", NULL };
        struct table table = { 0 };

        printf("\n");
        table_begin(&table, headings);
        for (size_t i = 0; i < json_field_count(members); i++) {
                struct json_field member = json_field_at(members, i), *item = &member,
                                  pods = json_field_get(item, "pods");
                CLEANUP(text_free) struct text names = { 0 };

                for (size_t p = 0; p < json_field_count(&pods); p++) {
                        struct json_field pod = json_field_at(&pods, p);
                        const char *name = "";

                        (void) json_field_as_string(&pod, &name, NULL);
                        text_printf(&names, "%s%s", p == 0 ? "" : ", ", name);
                }
                if ((size_t) number_of(item, "count") > json_field_count(&pods))
                        text_append(&names, ", ...");
                table_add(&table, TABLE_PLAIN, "%lld", number_of(item, "count"));
                table_add(&table, strcmp(text_of(item, "state"), "waits") == 0 ? TABLE_WARN : TABLE_PLAIN,
                          "%s", text_of(item, "state"));
                table_add(&table, TABLE_PLAIN, "%s", text_of(item, "node"));
                table_add(&table, TABLE_PLAIN, "%lld", number_of(item, "chips"));
                table_add(&table, TABLE_FAINT, "%s", names.data == NULL ? "" : names.data);
        }
        (void) table_print(&table, table_wants_colour(stdout), stdout);
        table_free(&table);
}

/* Whom it is about, and the verdict. */
static void print_verdict(const struct json_field *answer)
{
        if (text_of(answer, "job")[0] != '\0')
                table_line(stdout, "%s %s: %s", text_of(answer, "kind"), text_of(answer, "job"),
                           text_of(answer, "verdict"));
        else
                table_line(stdout, "pod %s asks for %lld chip(s): %s%s%s", text_of(answer, "pod"),
                           number_of(answer, "chips"), text_of(answer, "verdict"),
                           text_of(answer, "boundTo")[0] != '\0' ? ", it runs on " : "",
                           text_of(answer, "boundTo"));
        table_line(stdout, "%s", text_of(answer, "summary"));
        if (text_of(answer, "note")[0] != '\0')
                table_line(stdout, "note: %s", text_of(answer, "note"));
}

static void print_table(const json_t *value)
{
        struct json_field root = json_field_root(value), *answer = &root,
                          shares = json_field_get(answer, "shares"), nodes = json_field_get(answer, "nodes"),
                          plan = json_field_get(answer, "plan"), members = json_field_get(answer, "members"),
                          reasons = json_field_get(answer, "reasons"),
                          remedies = json_field_get(answer, "remedies");

        table_line(stdout, "asked: %s", text_of(answer, "asked"));
        print_verdict(answer);
        print_shares(&shares);
        if (json_field_count(&plan) > 0)
                print_plan(&plan);
        if (json_field_count(&members) > 0)
                print_members(&members);
        if (nodes.value != NULL)
                print_nodes(&nodes);
        else if (members.value == NULL || json_field_count(&reasons) > 0)
                print_reasons_found(&reasons);
        print_remedies(&remedies);
}

/* What is asked about: "NAME", "pod/NAME", "job/NAME", "NAMESPACE/NAME", "job/NAMESPACE/NAME"... A group, as
 * Kubernetes has them, is a job whose name begins with JOB_OF_GROUP; it may have slashes of its own, and no
 * namespace before it but the key's. */
#define JOB_OF_GROUP "group/"

struct subject {
        bool job;
        char namespace_[256], name[1024];
};

static void read_operand(const char *operand, const char *namespace_, struct subject *ret)
{
        static const struct {
                const char *prefix;
                bool job, group;
        } kinds[] = { { "pod/", false, false },
                      { "job/", true, false },
                      { "trainingjob.remuda.dev/", true, false },
                      { JOB_OF_GROUP, true, true },
                      { "podgroup.scheduling.k8s.io/", true, true } };
        const char *rest = operand;
        bool group = false;

        *ret = (struct subject){ .job = false };
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && rest == operand; i++)
                if (text_starts_with(operand, kinds[i].prefix)) {
                        rest += strlen(kinds[i].prefix);
                        ret->job = kinds[i].job;
                        group = kinds[i].group;
                }
        (void) text_copy(ret->namespace_, sizeof(ret->namespace_), namespace_);
        if (!group && strchr(rest, '/') != NULL)
                rest = store_key_split(rest, ret->namespace_);
        (void) text_format(ret->name, sizeof(ret->name), "%s%s", group ? JOB_OF_GROUP : "", rest);
        ret->job = ret->job || text_starts_with(ret->name, JOB_OF_GROUP);
}

static int not_found(const struct subject *subject, struct err *err)
{
        return err_set(err, -ENOENT, "there is no %s '%s' in namespace '%s' (-n NS chooses another)",
                       subject->job ? "job" : "pod", subject->name, subject->namespace_);
}

/* The same from the store, by the options of the extender as they are given here. */
static int work_out(const struct explain_options *options, const struct subject *subject, json_t **ret,
                    struct err *err)
{
        unsigned flags = options->all ? EXPLAIN_ALL : 0;
        struct cluster_arguments_opened opened = { 0 };
        const struct ledger_pod *pod = NULL;
        const struct ledger_job *job = NULL;
        uint64_t now_usec = clock_realtime_usec();
        int r = cluster_arguments_open(&options->cluster, &opened, err);

        if (r == 0)
                backfill_renew(cluster_ledger(opened.cluster), cluster_rules(opened.cluster),
                               now_usec); /* no store tells of holds: they follow from who waits */
        if (r == 0 && subject->job)
                job = ledger_jobs_find(cluster_ledger(opened.cluster), subject->namespace_, subject->name);
        else if (r == 0)
                pod = ledger_pods_find(cluster_ledger(opened.cluster), subject->namespace_, subject->name);
        if (job != NULL)
                *ret = explain_job(opened.cluster, job, now_usec, flags, err);
        else if (pod != NULL)
                *ret = explain_pod(opened.cluster, pod, now_usec, flags, err);
        if (r == 0 && job == NULL && pod == NULL)
                r = not_found(subject, err);
        else if (r == 0 && *ret == NULL)
                r = err->code != 0 ? err->code : -ENOMEM;
        cluster_arguments_close(&opened);
        return r;
}

static int explain(const struct explain_options *options, const char *operand, struct err *err)
{
        CLEANUP(free_p) char *namespace_ = NULL, *name = NULL;
        CLEANUP(text_free) struct text path = { 0 };
        char who[ASK_WHO_BYTES];
        struct ask_question question = { .wanted = "verdict" };
        struct subject subject;
        json_t *answer = NULL;
        int r;

        read_operand(operand, options->namespace_, &subject);
        namespace_ = agent_client_escape(subject.namespace_);
        name = agent_client_escape(subject.name);
        if (namespace_ == NULL || name == NULL)
                return err_set(err, -ENOMEM, "no memory for the question");
        text_printf(&path, "/v1/explain?namespace=%s&%s=%s%s", namespace_, subject.job ? "job" : "pod", name,
                    options->all ? "&all=1" : "");
        question.path = path.data;
        r = path.failed ? err_set(err, -ENOMEM, "no memory for the question")
                        : ask_extender(&options->ask, &options->cluster, &question, &answer, who, err);
        if (r == -ENOENT)
                r = not_found(&subject, err);
        if (r == ASK_E_STORE)
                r = work_out(options, &subject, &answer, err);
        if (r == 0)
                (void) json_object_set_new(answer, "asked", json_string(who));
        if (r == 0 && strcmp(options->output, "json") == 0)
                r = document_print(answer, false, JSON_ENSURE_ASCII);
        else if (r == 0)
                print_table(answer);
        json_decref(answer);
        return r;
}

int command_explain(int argc, char **argv)
{
        struct explain_options options = { 0 };
        struct err err = { 0 };
        size_t operands;
        int r = options_start(&command_explain_options, REMUDA_VERSION, argc, argv, &options, &operands,
                              stdout, stderr);

        if (r >= 0)
                return r;
        if (options.reasons)
                return print_reasons(strcmp(options.output, "json") == 0);
        if (operands != 1) {
                fprintf(stderr,
                        "remuda explain: pod/NAME or job/NAME is needed (or --reasons); see --help\n");
                return EXIT_USAGE;
        }
        r = explain(&options, argv[1], &err);
        return options_end(&command_explain_options, r, &err, stderr);
}
