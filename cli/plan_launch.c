/* `remuda plan launch`: a job, placed on real machines or on machine files, as other launchers take it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/json/json_writer.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/plan_more.h"
#include "job/plan/launch_levels.h"
#include "job/plan/launch_lines.h"
#include "job/plan/launch_mpi.h"
#include "job/run/run.h"
#include "job/run/run_preview.h"
#include "job/run/run_speeds.h"
#include "job/run/run_split.h"
#include "job/run/run_world.h"
#include "job/spec/job_role.h"
#include "job/spec/job_yaml.h"
#include "planner/shards/shards.h"

struct launch_options {
        const char *output, *format, *store, *programs, *segments, *queue, *files, *profile, *replicas;
        struct option_list addresses, device_ips;
        uint64_t epoch, layers;
        unsigned port;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "format", .type = OPTION_CHOICE, .offset = offsetof(struct launch_options, format),
          .value = "mpirun|torchrun|ranktable|flagscale|hccl|slurm|bsub|stages|env",
          .help = "whose words to write; -o json and table do without" },
        { .name = "store", .type = OPTION_STRING, .offset = offsetof(struct launch_options, store),
          .value = "dir:PATH", .help = "place on the machines that stand there, not on this one" },
        { .name = "programs", .type = OPTION_STRING, .offset = offsetof(struct launch_options, programs),
          .value = "FILE", .help = "program table for what the job does not say (/etc/remuda/programs.yaml)" },
        { .name = "profile", .type = OPTION_STRING, .offset = offsetof(struct launch_options, profile),
          .value = "FILE", .help = "the model's layers, JSON or ONNX, of a job with strategy split" },
        { .name = "replicas", .type = OPTION_STRING, .offset = offsetof(struct launch_options, replicas),
          .value = "auto|N", .help = "pipelines side by side, of a job with strategy split, in place of spec.replicas" },
        { .name = "epoch", .type = OPTION_UINT64, .offset = offsetof(struct launch_options, epoch),
          .value = "SAMPLES", .default_ = "0", .maximum = SHARDS_MAX_BATCH, .help = "samples of an epoch, for REMUDA_SHARD" },
        { .name = "port", .type = OPTION_UNSIGNED, .offset = offsetof(struct launch_options, port),
          .value = "PORT", .default_ = "29500", .minimum = 1, .maximum = 65535, .help = "MASTER_PORT" },
        { .name = "address", .type = OPTION_LIST, .offset = offsetof(struct launch_options, addresses),
          .value = "NODE=ADDRESS", .help = "where a node is reached; its name unless given" },
        { .name = "device-ip", .type = OPTION_LIST, .offset = offsetof(struct launch_options, device_ips),
          .value = "NODE:INDEX=IP", .help = "ranktable: a chip's address, from its node's /etc/hccn.conf" },
        { .name = "layers", .type = OPTION_UINT64, .offset = offsetof(struct launch_options, layers),
          .value = "N", .default_ = "32", .minimum = 1, .maximum = 100000, .help = "flagscale: layers of the model" },
        { .name = "segments", .type = OPTION_STRING, .offset = offsetof(struct launch_options, segments),
          .value = "FILE", .help = "hccl: the answer of `remuda plan segments`" },
        { .name = "queue", .type = OPTION_STRING, .offset = offsetof(struct launch_options, queue),
          .value = "NAME", .default_ = "q_sw_expr", .help = "bsub: the queue" },
        { .name = "files", .type = OPTION_STRING, .offset = offsetof(struct launch_options, files),
          .value = "DIR", .help = "mpirun: also write DIR/hosts and DIR/app" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct launch_options, output),
          .value = "text|json|table", .default_ = "text", .help = "the lines alone, or with the ranks" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_more_launch_options = {
        .name = "remuda plan launch",
        .operands = "JOB.yaml",
        .operands_min = 1,
        .operands_max = 1,
        .summary =
                "A TrainingJob, placed and with its shares, as other launchers take it; nothing is started.",
        .after =
                "JOB.yaml may be - (standard input). Shares follow the SpeedTable of the store where it "
                "knows all\n"
                "chips, else what `remuda devices --measure` saw of all, else their data sheets.\n"
                "  remuda plan launch job.yaml --store dir:machines --format slurm >job.sh && sbatch job.sh\n"
                "See man remuda-plan.\n",
        .specs = specs,
};

/* What a launch is made of; the world borrows from the rest. */
struct launch {
        const struct launch_options *options;
        struct run run;
        struct run_options run_options;
        struct launch_rank *ranks;
        const char ***commands; /* [count] */
        struct arguments trainer;
        json_t *segments_file;
        uint64_t *segments;
        struct launch_levels levels;
        struct launch_world world;
};

static int read_job(struct launch *launch, const char *file, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size_bytes = 0;
        int r = plan_read_bytes(file, &bytes, &size_bytes, err);

        if (r == 0)
                r = job_yaml_parse(bytes, size_bytes, &launch->run.job, err);
        return r < 0 ? r
                     : run_read_split(&launch->run.job, launch->options->profile, launch->options->replicas,
                                      err);
}

static int read_programs(struct launch *launch, struct err *err)
{
        const char *path = launch->options->programs;

        if (path == NULL && access(PROGRAM_TABLE_PATH, R_OK) < 0)
                return 0;
        return program_file_load(path != NULL ? path : PROGRAM_TABLE_PATH, &launch->run.table, err);
}

static const struct job_program *job_program(const struct job *job, const char *runtime)
{
        for (size_t i = 0; i < job->program_count; i++)
                if (strcmp(job->programs[i].runtime, runtime) == 0 && job->programs[i].command_count > 0)
                        return &job->programs[i];
        return NULL;
}

static int share(struct launch *launch, struct err *err)
{
        struct run *run = &launch->run;
        int r;

        r = run_plan_cut(run, err);
        run->data_samples = launch->options->epoch;
        run_plan_place(run);
        return r;
}

/* The job's own command for the runtime, or the table's program; then the job's arguments, or the trainer's.
 */
static int make_command(struct launch *launch, size_t rank, struct err *err)
{
        const struct job *job = &launch->run.job;
        const char *runtime = launch->run.ranks[rank].runtime;
        const struct job_program *own = job_program(job, runtime);
        const struct program_table_row *table = program_table_find(&launch->run.table, runtime);
        size_t room = 2 + (own != NULL ? own->command_count : 0) +
                      (table != NULL ? table->arg_count + 1 : 0) + job->arg_count + launch->trainer.count;
        size_t count = 0;
        const char **command;

        if (own == NULL && table == NULL)
                return 0;
        command = calloc(room, sizeof(*command));
        if (command == NULL)
                return err_set(err, -ENOMEM, "no memory for the commands");
        launch->commands[rank] = command;
        if (own != NULL) {
                for (size_t i = 0; i < own->command_count; i++)
                        command[count++] = own->command[i];
        } else {
                command[count++] = table->path;
                for (size_t i = 0; i < table->arg_count; i++)
                        command[count++] = table->args[i];
        }
        for (size_t i = 0; i < job->arg_count; i++)
                command[count++] = job->args[i];
        for (size_t i = 0; i < launch->trainer.count; i++)
                command[count++] = launch->trainer.list[i];
        return 0;
}

static const char *listed(const struct option_list *list, const char *key)
{
        size_t size = strlen(key);

        for (size_t i = 0; i < list->count; i++)
                if (strncmp(list->items[i], key, size) == 0 && list->items[i][size] == '=')
                        return list->items[i] + size + 1;
        return NULL;
}

static void fill_rank(struct launch *launch, size_t index)
{
        const struct run_rank *from = &launch->run.ranks[index];
        const char *node = from->node[0] != '\0' ? from->node : "localhost";
        const char *address = listed(&launch->options->addresses, node);
        char chip[300];

        (void) text_format(chip, sizeof(chip), "%s:%u", node, from->device_index);
        launch->ranks[index] =
                (struct launch_rank){ .node = node,
                                      .address = address != NULL ? address : node,
                                      .runtime = from->runtime,
                                      .vendor = from->vendor,
                                      .model = from->device_model,
                                      .group = from->group,
                                      .device = from->device,
                                      .pci = from->pci,
                                      .network_mbps = from->network_mbps,
                                      .device_index = from->device_index,
                                      .device_ip = listed(&launch->options->device_ips, chip),
                                      .server = from->server,
                                      .batch = from->batch,
                                      .weight = from->weight,
                                      .speed = from->speed_source == CHIP_SPEED_ASSUMED
                                                       ? 0
                                                       : chip_speed_samples_per_s(&from->speed),
                                      .begin = from->begin,
                                      .end = from->end,
                                      .layers = run_split_is_planned(&launch->run) ? from->layers : NULL,
                                      .command = launch->commands[index] };
}

/* Indices from the job, or from the "hccl_indices" or "segments" of a plan. */
static int read_segments(struct launch *launch, struct err *err)
{
        const char *file = launch->options->segments;
        const json_t *list;
        int r;

        launch->world.segments = launch->run.job.segment_list;
        launch->world.segment_count = launch->run.job.segment_count;
        if (file == NULL)
                return 0;
        r = plan_read_json(file, &launch->segments_file, err);
        if (r < 0)
                return err_wrap(err, r, "%s", file);
        list = json_object_get(launch->segments_file, "segments");
        launch->segments = calloc(json_array_size(list) + 1, sizeof(*launch->segments));
        if (launch->segments == NULL)
                return err_set(err, -ENOMEM, "no memory for segments");
        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *last = json_object_get(json_array_get(list, i), "last");

                if (!json_is_integer(last) || json_integer_value(last) < 0)
                        return err_set(err, -EBADMSG,
                                       "%s: segments[%zu].last: is missing; give an answer of `remuda plan "
                                       "segments`",
                                       file, i);
                launch->segments[i] = (uint64_t) json_integer_value(last);
        }
        launch->world.segments = launch->segments;
        launch->world.segment_count = json_array_size(list);
        return 0;
}

static int make_world(struct launch *launch, struct err *err)
{
        struct run *run = &launch->run;
        int r;

        launch->ranks = calloc(run->rank_count + 1, sizeof(*launch->ranks));
        launch->commands = calloc(run->rank_count + 1, sizeof(*launch->commands));
        if (launch->ranks == NULL || launch->commands == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu ranks", run->rank_count);
        if (job_arguments_taken(&run->job))
                run_world_arguments(run, false, &launch->trainer);
        if (launch->trainer.failed)
                return err_set(err, -ENOMEM, "no memory for the arguments");
        for (size_t i = 0; i < run->rank_count; i++) {
                r = make_command(launch, i, err);
                if (r < 0)
                        return r;
                fill_rank(launch, i);
        }
        launch->world.job = run->job.name;
        launch->world.spec = job_arguments_taken(&run->job) ? NULL : &run->job; /* the trainer has options */
        launch->world.global_batch = run->job.global_batch;
        launch->world.ranks = launch->ranks;
        launch->world.count = run->rank_count;
        launch->world.epoch_known = launch->options->epoch > 0;
        launch->world.port = launch->options->port;
        launch->world.layers = launch->options->layers;
        launch->world.profile = run->job.profile.layer_count > 0 ? &run->job.profile : NULL;
        launch->world.microbatches = run->job.microbatches;
        launch->world.queue = launch->options->queue;
        if (launch_levels_choose(&launch->world, &run->job, &launch->levels) < 0)
                return err_set(err, -ENOMEM, "no memory for the groups");
        launch->world.levels = launch->levels.proposed;
        return read_segments(launch, err);
}

static int prepare(struct launch *launch, const char *file, struct err *err)
{
        int r = read_job(launch, file, err);

        if (r == 0)
                r = read_programs(launch, err);
        if (r == 0)
                r = run_place(&launch->run, err);
        if (r < 0)
                return r;
        r = share(launch, err);
        return r < 0 ? r : make_world(launch, err);
}

static int write_file(const char *folder, const char *name, struct text *bytes, struct err *err)
{
        CLEANUP(fclose_p) FILE *file = NULL;
        char path[4096];

        if (!text_format(path, sizeof(path), "%s/%s", folder, name))
                return err_set(err, -ENAMETOOLONG, "--files %.200s: is too long", folder);
        file = fopen(path, "we");
        if (file == NULL)
                return err_set(err, -errno, "--files: create '%.200s': %m", path);
        if (fwrite(bytes->data, 1, bytes->size_bytes, file) != bytes->size_bytes || fflush(file) != 0)
                return err_set(err, -errno, "--files: write '%.200s': %m", path);
        return 0;
}

static int write_files(const struct launch *launch, struct err *err)
{
        struct text hosts = { 0 }, app = { 0 };
        int r;

        if (launch->options->files == NULL)
                return 0;
        r = launch_mpi_hosts(&launch->world, &hosts, err);
        if (r == 0)
                r = launch_mpi_app(&launch->world, &app, err);
        if (r == 0)
                r = write_file(launch->options->files, "hosts", &hosts, err);
        if (r == 0)
                r = write_file(launch->options->files, "app", &app, err);
        text_free(&hosts);
        text_free(&app);
        return r;
}

static void append_json(const struct launch *launch, const char *lines, struct text *out)
{
        struct json_writer json = { .text = out };

        json_writer_open(&json, NULL, '{');
        json_writer_string(&json, "job", launch->world.job);
        json_writer_string(&json, "levels", launch->levels.why);
        if (launch->options->format != NULL) {
                json_writer_string(&json, "format", launch->options->format);
                json_writer_string(&json, "text", lines);
        }
        json_writer_open(&json, "ranks", '[');
        for (size_t i = 0; i < launch->world.count; i++) {
                const struct launch_rank *rank = &launch->ranks[i];

                json_writer_open(&json, NULL, '{');
                json_writer_uint64(&json, "rank", i);
                json_writer_string(&json, "role", job_role_names[rank->server]);
                json_writer_string(&json, "node", rank->node);
                json_writer_string(&json, "runtime", rank->runtime);
                json_writer_string(&json, "model", rank->model);
                json_writer_string(&json, "group", rank->group);
                json_writer_string(&json, "device", rank->device);
                run_preview_share(&json, &launch->run.ranks[i]);
                json_writer_double(&json, "weight", rank->weight);
                json_writer_open(&json, "command", '[');
                for (size_t w = 0; rank->command != NULL && rank->command[w] != NULL; w++)
                        json_writer_string(&json, NULL, rank->command[w]);
                json_writer_close(&json, ']');
                json_writer_close(&json, '}');
        }
        json_writer_close(&json, ']');
        json_writer_close(&json, '}');
}

static void append_table(const struct launch *launch, struct text *out)
{
        text_printf(out, "%-5s %-7s %-20s %-10s %-24s %-20s %8s %9s %-9s %s\n", "rank", "role", "node",
                    "runtime", "model", "group", "share", "weight", "speed", "precision");
        for (size_t i = 0; i < launch->world.count; i++) {
                const struct launch_rank *rank = &launch->ranks[i];
                const struct run_rank *run = &launch->run.ranks[i];

                text_printf(out, "%-5zu %-7s %-20s %-10s %-24s %-20s %8llu %9.4f %-9s %s\n", i,
                            job_role_names[rank->server], rank->node, rank->runtime, rank->model, rank->group,
                            (unsigned long long) rank->batch, rank->weight,
                            rank->server ? "-" : chip_speed_names[run->speed_source],
                            rank->server ? "-" : chip_speed_precision_names[run->precision]);
        }
}

/* Do its ranks find variables? The queue of bsub chooses the nodes, others take no line for a rank. */
static bool is_told_levels(enum launch_lines_format format)
{
        return format == LAUNCH_MPIRUN || format == LAUNCH_TORCHRUN || format == LAUNCH_SLURM ||
               format == LAUNCH_ENV;
}

/* What the reader should know and the format cannot say. */
static void remark(const struct launch *launch, enum launch_lines_format format)
{
        size_t unknown = 0;
        struct err err;

        if (format == LAUNCH_TORCHRUN && launch_need_commands(&launch->world, &err) < 0)
                fprintf(stderr, "remuda plan launch: torchrun's line of some nodes is left out: %s\n",
                        err.msg);
        for (size_t i = 0; format == LAUNCH_RANKTABLE && i < launch->world.count; i++)
                unknown +=
                        strcmp(launch->ranks[i].runtime, "cann") == 0 && launch->ranks[i].device_ip == NULL;
        if (is_told_levels(format) && (launch->levels.hosts || launch->levels.two))
                fprintf(stderr, "remuda plan launch: gradients are summed in %s\n", launch->levels.why);
        if (unknown > 0)
                fprintf(stderr,
                        "remuda plan launch: device_ip of %zu chips is not known and left out: HCCL needs it "
                        "between nodes; "
                        "give --device-ip NODE:INDEX=IP\n",
                        unknown);
}

static int answer(struct launch *launch, const char *file, struct text *out, struct err *err)
{
        struct text lines = { 0 };
        enum launch_lines_format format = LAUNCH_ENV;
        bool has_format = launch->options->format != NULL;
        int r = has_format ? launch_lines_format_parse(launch->options->format, &format) : 0;

        if (r < 0)
                return err_set(err, r, "--format: not known");
        r = prepare(launch, file, err);
        if (!is_told_levels(format))
                launch->world.levels = NULL;
        if (r == 0 && has_format)
                r = launch_lines_write(&launch->world, format, &lines, err);
        if (r == 0)
                r = write_files(launch, err);
        if (r == 0 && lines.failed)
                r = err_set(err, -ENOMEM, "no memory for the lines");
        if (r == 0) {
                if (strcmp(launch->options->output, "json") == 0)
                        append_json(launch, lines.data, out);
                else if (strcmp(launch->options->output, "table") == 0)
                        append_table(launch, out);
                else
                        text_append(out, lines.data);
                remark(launch, format);
        }
        text_free(&lines);
        return r;
}

static void launch_free(struct launch *launch)
{
        for (size_t i = 0; launch->commands != NULL && i < launch->run.rank_count; i++)
                free(launch->commands[i]);
        free(launch->commands);
        free(launch->ranks);
        launch_levels_free(&launch->levels);
        free(launch->segments);
        arguments_free(&launch->trainer);
        json_decref(launch->segments_file);
        run_free(&launch->run);
}

int plan_more_launch(int argc, char **argv, const struct plan_host *host)
{
        struct launch_options options = { 0 };
        struct launch launch = { .options = &options };
        struct text out = { 0 };
        struct err err = { 0 };
        size_t operands = 0;
        int r = options_start(&plan_more_launch_options, REMUDA_VERSION, argc, argv, &options, &operands,
                              stdout, stderr);

        (void) host;
        if (r >= 0)
                return r;
        if (options.format == NULL && strcmp(options.output, "text") == 0) {
                fprintf(stderr, "remuda plan launch: --format is missing; give one of mpirun, torchrun, "
                                "ranktable, flagscale, "
                                "hccl, slurm, bsub, env, stages, or -o json or table for the ranks alone\n");
                return EXIT_USAGE;
        }
        job_init(&launch.run.job);
        launch.run.options = &launch.run_options;
        launch.run_options.store = options.store;
        launch.run.lock = launch.run.checkpoint_lock = -1;
        launch.run.events = json_array();
        r = answer(&launch, argv[1], &out, &err);
        launch_free(&launch);
        return plan_finish("launch", argv[1], r, &out, &err);
}
