/* remuda support-bundle: one archive of what this node, its agent and the cluster say of themselves, to send
 * to a vendor or to attach to an issue: without secrets, and with a page that says what is not in it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/timestamp.h"
#include "base/version.h"
#include "cli/bundle/bundle_cluster.h"
#include "cli/bundle/bundle_node.h"
#include "cli/command/agent_client.h"
#include "cli/command/commands.h"
#include "io/clock.h"
#include "io/whole_file.h"
#include "io/write_all.h"
#include "store/kubernetes/kube.h"

struct support_bundle_options {
        struct bundle_node_options node;
        struct cluster_arguments cluster;
        struct ask_arguments ask;
        const char *output, *namespace_;
        bool force, job_logs, no_cluster;
};

#define AT(member) offsetof(struct support_bundle_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "output", .letter = 'o', .type = OPTION_STRING, .offset = AT(output), .value = "FILE.tar.gz",
          .help = "where to, - is standard output (remuda-support-TIME.tar.gz)" },
        { .name = "force", .type = OPTION_BOOL, .offset = AT(force), .help = "replace a file that is there" },
        { .name = "root", .type = OPTION_STRING, .offset = AT(node.root), .value = "DIR",
          .help = "look at this directory's machine" },
        { .name = "machine", .type = OPTION_STRING, .offset = AT(node.machine), .value = "FILE",
          .help = "look at a machine file" },
        { .name = "socket", .type = OPTION_STRING, .offset = AT(node.socket), .value = "PATH",
          .default_ = AGENT_CLIENT_SOCKET, .help = "the agent's socket" },
        { .name = "agent", .type = OPTION_STRING, .offset = AT(node.agent), .value = "ADDR:PORT",
          .help = "ask the agent at an address instead" },
        { .name = "config", .type = OPTION_STRING, .offset = AT(node.config), .value = "FILE",
          .default_ = "/etc/remuda/agent.yaml", .help = "the agent's configuration" },
        { .name = "no-cluster", .type = OPTION_BOOL, .offset = AT(no_cluster), .help = "this node alone" },
        { .name = "namespace", .letter = 'n', .type = OPTION_STRING, .offset = AT(namespace_), .value = "NS",
          .help = "jobs of this namespace alone" },
        { .name = "job-logs", .type = OPTION_BOOL, .offset = AT(job_logs),
          .help = "what jobs print, too: it is their users'" },
        ASK_ARGUMENTS_ROWS(struct support_bundle_options),
        CLUSTER_ARGUMENTS_ROWS(struct support_bundle_options),
        { 0 },
};
/* clang-format on */

const struct option_program command_support_bundle_options = {
        .name = "remuda support-bundle",
        .summary = "Writes one archive of what the node, its agent and the cluster say of themselves, for a "
                   "vendor "
                   "or an issue.\nSecrets are masked; its MANIFEST says what is in it, what is not, and why.",
        .after = "Look into it before you send it: names of nodes, jobs and images are in it.\n"
                 "See remuda-support-bundle(1).\n",
        .specs = specs,
};

static bool is_standard_output(const struct support_bundle_options *options)
{
        return options->output != NULL && strcmp(options->output, "-") == 0;
}

static int check(struct support_bundle_options *options, struct err *err)
{
        if (options->node.root != NULL && options->node.machine != NULL)
                return err_set(err, -EINVAL, "--root and --machine exclude each other");
        if (options->namespace_ != NULL && !kube_name_is_safe(options->namespace_))
                return err_set(err, -EINVAL, "--namespace: '%.100s' is no name", options->namespace_);
        if (is_standard_output(options) && isatty(STDOUT_FILENO))
                return err_set(err, -EINVAL, "an archive is nothing for a terminal: -o FILE.tar.gz");
        options->node.programs = options->cluster.programs;
        return 0;
}

/* "remuda-support-20261128T091500Z.tar.gz", here */
static void name_output(char *path, size_t path_bytes, uint64_t now_usec)
{
        char now[TIMESTAMP_BYTES], *to = now;

        (void) timestamp_format(now_usec - now_usec % 1000000, now);
        for (const char *from = now; *from != '\0'; from++)
                if (*from != ':' && *from != '-')
                        *to++ = *from;
        *to = '\0';
        (void) text_format(path, path_bytes, "remuda-support-%s.tar.gz", now);
}

static int refuse_taken(const char *path, bool force, struct err *err)
{
        if (force || access(path, F_OK) < 0)
                return 0;
        return err_set(err, -EINVAL, "'%s' is there already: another name, or --force", path);
}

static int write_out(const struct support_bundle_options *options, const char *path,
                     const struct text *archive, struct err *err)
{
        unsigned flags = WHOLE_FILE_SYNCED | WHOLE_FILE_FRESH | (options->force ? 0 : WHOLE_FILE_NEW);
        int r;

        if (!is_standard_output(options))
                return whole_file_write(path, archive->data, archive->size_bytes, 0600, flags, err);
        r = write_all(STDOUT_FILENO, archive->data, archive->size_bytes);
        return r < 0 ? err_set(err, r, "standard output: %s", strerrordesc_np(-r)) : 0;
}

static int gather(struct bundle *bundle, const struct support_bundle_options *options, struct err *err)
{
        const struct bundle_cluster_options cluster = { .cluster = &options->cluster,
                                                        .ask = &options->ask,
                                                        .namespace_ = options->namespace_,
                                                        .job_logs = options->job_logs };

        bundle_node_gather(bundle, &options->node);
        if (!options->no_cluster)
                return bundle_cluster_gather(bundle, &cluster, err);
        bundle_miss(bundle, "the cluster", "--no-cluster");
        return 0;
}

/* People see on standard error what came of it. */
static void report(const struct bundle *bundle, const char *path, size_t size_bytes)
{
        fprintf(stderr,
                "%s: %zu files, %zu KiB; %zu values and %zu serial numbers masked; %zu sources missing\n",
                path, bundle->file_count, size_bytes / 1024, bundle->secrets.masked,
                bundle->secrets.serials_masked, json_array_size(bundle->missing));
        if (bundle->secrets.full || bundle->secrets.serials_full)
                fputs("There were more secrets than are remembered: not each is masked wherever it stands.\n",
                      stderr);
        fputs("Look into it before you send it: MANIFEST says what is in it, what is not, and why.\n",
              stderr);
}

static int make(struct support_bundle_options *options, struct err *err)
{
        uint64_t now = clock_realtime_usec();
        struct bundle bundle = { 0 };
        struct text archive = { 0 };
        char named[80];
        const char *path = options->output != NULL ? options->output : named;
        int r = check(options, err);

        name_output(named, sizeof(named), now);
        if (r == 0)
                r = is_standard_output(options) ? 0 : refuse_taken(path, options->force, err);
        if (r == 0)
                r = gather(&bundle, options, err);
        if (r == 0)
                r = bundle_pack(&bundle, now, &archive, err);
        if (r == 0)
                r = write_out(options, path, &archive, err);
        if (r == 0)
                report(&bundle, is_standard_output(options) ? "standard output" : path, archive.size_bytes);
        text_free(&archive);
        bundle_free(&bundle);
        return r;
}

int command_support_bundle(int argc, char **argv)
{
        struct support_bundle_options options = { 0 };
        struct err err = { 0 };
        int code = options_start(&command_support_bundle_options, REMUDA_VERSION, argc, argv, &options, NULL,
                                 stdout, stderr);

        if (code >= 0)
                return code;
        return options_end(&command_support_bundle_options, make(&options, &err), &err, stderr);
}
