/* remuda doctor: is everything on this node as it should be, and what to do where it is not. */
#include "cli/doctor.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/discovery.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/commands.h"
#include "cli/command/document.h"
#include "cli/command/open_tree.h"
#include "cli/command/table.h"
#include "io/loop.h"
#include "job/spec/program_table.h"

#define AGENT_MSEC 3000 /* who does not answer in this time is ill, too */

struct doctor_options {
        const char *root, *machine, *socket, *kubelet_dir, *cdi_dir, *config, *programs, *output, *kubeconfig;
        bool cluster;
};

#define AT(member) offsetof(struct doctor_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "root", .type = OPTION_STRING, .offset = AT(root), .value = "DIR",
          .help = "look at this directory's machine alone" },
        { .name = "machine", .type = OPTION_STRING, .offset = AT(machine), .value = "FILE",
          .help = "look at a machine file alone" },
        { .name = "socket", .type = OPTION_STRING, .offset = AT(socket), .value = "PATH",
          .default_ = AGENT_CLIENT_SOCKET, .help = "the agent's socket" },
        { .name = "kubelet-dir", .type = OPTION_STRING, .offset = AT(kubelet_dir), .value = "DIR",
          .default_ = "/var/lib/kubelet/device-plugins", .help = "where the kubelet's socket is" },
        { .name = "cdi-dir", .type = OPTION_STRING, .offset = AT(cdi_dir), .value = "DIR",
          .help = "where CDI specs of claims are, if not as --config says" },
        { .name = "config", .type = OPTION_STRING, .offset = AT(config), .value = "FILE",
          .default_ = "/etc/remuda/agent.yaml", .help = "the agent's configuration" },
        { .name = "programs", .type = OPTION_STRING, .offset = AT(programs), .value = "FILE",
          .default_ = PROGRAM_TABLE_PATH, .help = "the program table" },
        { .name = "cluster", .type = OPTION_BOOL, .offset = AT(cluster),
          .help = "look at the cluster's rights, policies and leaders instead" },
        { .name = "kubeconfig", .type = OPTION_STRING, .offset = AT(kubeconfig), .value = "FILE",
          .help = "for --cluster; KUBECONFIG or the pod's own if left out" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = AT(output), .value = "table|json",
          .default_ = "table", .help = "how to print" },
        { 0 },
};

static const char *const verdict_names[DOCTOR_COUNT] = { "PASS", "WARN", "FAIL", "SKIP" };
/* clang-format on */

const struct option_program command_doctor_options = {
        .name = "remuda doctor",
        .summary = "Looks at everything that accelerators on this node depend on; exit 4 when a check fails.",
        .specs = specs,
};

void doctor_found(struct doctor_finding *f, enum doctor_verdict verdict, const char *remedy, const char *fmt,
                  ...)
{
        va_list ap;

        if (f->sentence[0] != '\0' && (verdict == DOCTOR_PASS || verdict <= f->verdict))
                return;
        f->verdict = verdict;
        (void) text_copy(f->remedy, sizeof(f->remedy), remedy);
        va_start(ap, fmt);
        (void) vsnprintf(f->sentence, sizeof(f->sentence), fmt, ap);
        va_end(ap);
}

struct report {
        bool json, colour;
        json_t *list;
        unsigned counts[DOCTOR_COUNT];
};

static struct report new_report(const struct doctor_options *options)
{
        return (struct report){ .json = strcmp(options->output, "json") == 0,
                                .colour = table_wants_colour(stdout),
                                .list = json_array() };
}

/* The remedy stands below: both are sentences, and a terminal is narrow. */
static void print_line(const struct report *report, const char *name, const struct doctor_finding *f)
{
        static const char *const colours[DOCTOR_COUNT] = { "\033[32m", "\033[33m", "\033[31m", "\033[2m" };

        printf("%s%s%s  %-17s %s\n", report->colour ? colours[f->verdict] : "", verdict_names[f->verdict],
               report->colour ? "\033[0m" : "", name, f->sentence);
        if (f->remedy[0] != '\0')
                printf("%25s-> %s\n", "", f->remedy);
}

static void run_checks(const struct doctor_check *checks, const struct doctor_patient *patient,
                       struct report *report)
{
        for (; checks->name != NULL; checks++) {
                struct doctor_finding f = { .verdict = DOCTOR_PASS };

                if (checks->live_only && !patient->live)
                        continue;
                checks->run(patient, &f);
                if (f.sentence[0] == '\0')
                        doctor_found(&f, DOCTOR_SKIP, "", "nothing to look at");
                report->counts[f.verdict]++;
                if (!report->json)
                        print_line(report, checks->name, &f);
                (void) json_array_append_new(report->list,
                                             json_pack("{s:s, s:s, s:s, s:s}", "check", checks->name,
                                                       "verdict", verdict_names[f.verdict], "found",
                                                       f.sentence, "remedy", f.remedy));
        }
}

static void ask_agent(struct doctor_patient *patient)
{
        const struct agent_client client = { .socket = patient->socket, .timeout_msec = AGENT_MSEC };
        struct err err = { 0 };

        inventory_init(&patient->agent_inventory);
        patient->agent_answers =
                agent_client_inventory(&client, &patient->agent_inventory, &err) == 0 &&
                agent_client_request(&client, "GET", "/metrics", &patient->metrics, &err) == 0;
        (void) text_copy(patient->agent_trouble, sizeof(patient->agent_trouble), err.msg);
}

static int print_report(const struct report *report)
{
        if (report->json)
                (void) document_print(report->list, false, 0);
        else
                printf("\n%u passed, %u warnings, %u failed\n", report->counts[DOCTOR_PASS],
                       report->counts[DOCTOR_WARN], report->counts[DOCTOR_FAIL]);
        return report->counts[DOCTOR_FAIL] > 0 ? EXIT_UNHEALTHY : EXIT_DONE;
}

static int examine(const struct doctor_options *options, const struct tree *tree)
{
        struct report report = new_report(options);
        struct doctor_patient patient = { .tree = tree,
                                          .live = tree_is_live(tree),
                                          .kubelet_dir = options->kubelet_dir,
                                          .socket = options->socket,
                                          .cdi_dir = options->cdi_dir,
                                          .config = options->config,
                                          .programs = options->programs };
        struct inventory inventory;
        struct err err = { 0 };
        int code, r = discovery_run(tree, NULL, &inventory, &err);

        if (r < 0) {
                fprintf(stderr, "remuda doctor: %s\n", err.msg);
                json_decref(report.list);
                return EXIT_FAILED;
        }
        patient.inventory = &inventory;
        if (patient.live)
                ask_agent(&patient);
        run_checks(doctor_checks_machine, &patient, &report);
        run_checks(doctor_checks_system, &patient, &report);
        run_checks(doctor_checks_agent, &patient, &report);
        run_checks(doctor_checks_claims, &patient, &report);
        code = print_report(&report);
        json_decref(report.list);
        inventory_free(&inventory);
        if (patient.live)
                inventory_free(&patient.agent_inventory);
        free(patient.metrics);
        return code;
}

static int examine_cluster(const struct doctor_options *options)
{
        struct report report = new_report(options);
        struct doctor_patient patient = { .live = false };
        struct err err = { 0 };
        int code = EXIT_FAILED, r = loop_new(&patient.loop, &err);

        if (r == 0)
                r = kube_client_new(patient.loop, options->kubeconfig, &patient.kube, &err);
        if (r < 0) {
                fprintf(stderr, "remuda doctor: %s\n", err.msg);
        } else {
                run_checks(doctor_checks_cluster, &patient, &report);
                code = print_report(&report);
        }
        json_decref(report.list);
        kube_client_free(patient.kube);
        sd_event_unref(patient.loop);
        return code;
}

int command_doctor(int argc, char **argv)
{
        struct doctor_options options = { 0 };
        struct tree *tree = NULL;
        struct err err = { 0 };
        int code = options_start(&command_doctor_options, REMUDA_VERSION, argc, argv, &options, NULL, stdout,
                                 stderr);

        if (code >= 0)
                return code;
        if (options.cluster)
                return examine_cluster(&options);
        if (options.root != NULL && options.machine != NULL) {
                fprintf(stderr, "remuda doctor: --root and --machine exclude each other\n");
                return EXIT_USAGE;
        }
        if (open_tree(options.root, options.machine, &tree, &err) < 0) {
                fprintf(stderr, "remuda doctor: %s\n", err.msg);
                return EXIT_USAGE;
        }
        code = examine(&options, tree);
        tree_close(tree);
        return code;
}
