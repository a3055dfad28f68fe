/* remuda-train-RUNTIME: the reference training program; which runtime is decided by the backend linked in. */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/version.h"
#include "trainer/export/export.h"
#include "trainer/in_step/patience.h"
#include "trainer/json_line.h"
#include "trainer/measuring/fusion_gain.h"
#include "trainer/measuring/measure.h"
#include "trainer/operators/conformance.h"
#include "trainer/operators/own_operators.h"
#include "trainer/operators/tune.h"
#include "trainer/rank.h"
#include "trainer/stop.h"
#include "trainer/strategy.h"
#include "trainer/tuned_backend.h"
#include "trainer/weights.h"

static int code_of(int result)
{
        return result == -EINVAL || result == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
}

static void say(const char *program, const struct err *err)
{
        (void) fprintf(stderr, "%s: %s\n", program, err->msg);
}

struct totals {
        double samples, loss, loss_samples, load, compute, exchange, hidden, passed, passed_bytes, pass;
};

/* Collective. Times are means over the workers. */
static struct totals add_up(const struct training *t)
{
        const struct record *r = &t->record;
        struct totals own = {
                .samples = (double) r->sample_count,
                .loss = t->epoch_loss,
                .loss_samples = (double) t->epoch_loss_samples,
                .load = (double) r->total_usec[RECORD_LOAD],
                .compute = (double) (r->total_usec[RECORD_FORWARD] + r->total_usec[RECORD_BACKWARD] +
                                     r->total_usec[RECORD_UPDATE]),
                .exchange = (double) r->total_usec[RECORD_EXCHANGE],
                .hidden = r->saved_ms * 1e3 +
                          (r->total_usec[RECORD_LOAD] > r->load_waited_usec
                                   ? (double) (r->total_usec[RECORD_LOAD] - r->load_waited_usec)
                                   : 0),
                .passed = (double) t->ring.samples,
                .passed_bytes = (double) t->ring.bytes,
                .pass = (double) t->ring.usec,
        };
        struct totals sum = own;

        if (t->world.parallel) {
                patience_gather();
                MPI_Allreduce(&own, &sum, (int) (sizeof(own) / sizeof(double)), MPI_DOUBLE, MPI_SUM,
                              MPI_COMM_WORLD);
        }
        return sum;
}

/* Ranks that hold the same layers have the same. */
static uint64_t parameter_hash(const struct training *t)
{
        backend_to_host(&t->backend, t->parameters);
        return hash_bytes(t->parameters, t->part.count * sizeof(*t->parameters), 0);
}

static void report_traffic(const struct training *t)
{
        struct backend_traffic traffic = { 0 };
        char hash[24];
        struct rusage usage = { 0 };
        struct json_line line = { 0 };
        uint64_t steps = t->last_step > t->first_step ? t->last_step - t->first_step : 1;
        size_t held = t->part.count * sizeof(float) * (t->velocity != NULL ? 3 : 2); /* with gradients */

        if (!t->options->traffic)
                return;
        if (t->backend.row->traffic != NULL)
                t->backend.row->traffic(t->backend.state, &traffic);
        (void) getrusage(RUSAGE_SELF, &usage);
        json_line_open(&line, NULL, '{');
        json_line_uint(&line, "rank", (uint64_t) t->world.rank);
        json_line_uint(&line, "steps", steps);
        json_line_uint(&line, "parameter_bytes", t->part.count * sizeof(float));
        json_line_uint(&line, "held_bytes", held);
        (void) text_format(hash, sizeof(hash), "%016llx", (unsigned long long) parameter_hash(t));
        json_line_text(&line, "parameter_hash", hash);
        json_line_uint(&line, "peak_resident_bytes", (uint64_t) usage.ru_maxrss * 1024);
        json_line_uint(&line, "tile_rows", t->tiling.nodes > 0 ? t->tiling.rows : 0);
        json_line_uint(&line, "tile_bytes", t->tiling.tile_bytes);
        json_line_uint(&line, "untiled_bytes", t->tiling.whole_bytes);
        json_line_uint(&line, "read_bytes", traffic.read_bytes);
        json_line_uint(&line, "written_bytes", traffic.written_bytes);
        json_line_uint(&line, "unstaged_bytes", traffic.unstaged_bytes);
        json_line_uint(&line, "bytes_per_step", (traffic.read_bytes + traffic.written_bytes) / steps);
        json_line_uint(&line, "unstaged_bytes_per_step", traffic.unstaged_bytes / steps);
        json_line_uint(&line, "local_peak_bytes", traffic.local_peak_bytes);
        if (traffic.chip != NULL) {
                json_line_text(&line, "chip", traffic.chip);
                json_line_uint(&line, "local_room_bytes", traffic.local_room_bytes);
                json_line_uint(&line, "merged_by_slave_cores", traffic.merged_by_slave_cores);
                json_line_uint(&line, "merged_by_management_core", traffic.merged_by_management_core);
        }
        if (traffic.simulated_nsec > 0) {
                json_line_uint(&line, "simulated_usec_per_step", traffic.simulated_nsec / steps / 1000);
        }
        json_line_uint(&line, "sent_bytes", t->distribution.sent_bytes);
        json_line_uint(&line, "received_bytes", t->distribution.received_bytes);
        json_line_close(&line, '}');
        json_line_print(&line, stderr);
}

static void report(const struct training *t, double accuracy, double loss)
{
        struct totals sum = add_up(t);
        double ms = 1e-3 / (double) (t->world.size > 1 ? t->shares.workers : 1);
        struct json_line line = { 0 };

        if (t->world.rank != 0)
                return;
        if (isnan(loss))
                loss = sum.loss / sum.loss_samples;
        json_line_open(&line, NULL, '{');
        json_line_real(&line, "accuracy", accuracy, 6);
        json_line_real(&line, "loss", loss, 6);
        json_line_real(&line, "seconds", t->seconds, 6);
        json_line_real(&line, "samples", sum.samples, 0);
        json_line_real(&line, "samples_per_s", t->seconds > 0 ? sum.samples / t->seconds : NAN, 1);
        json_line_real(&line, "load_ms", sum.load * ms, 3);
        json_line_real(&line, "compute_ms", sum.compute * ms, 3);
        json_line_real(&line, "exchange_ms", sum.exchange * ms, 3);
        json_line_real(&line, "hidden_ms", sum.hidden * ms, 3);
        if (t->options->exchange > 0) {
                json_line_real(&line, "passed_samples", sum.passed, 0);
                json_line_real(&line, "passed_bytes", sum.passed_bytes, 0);
                json_line_real(&line, "pass_ms", sum.pass * ms, 3);
        }
        json_line_close(&line, '}');
        json_line_print(&line, stdout);
        (void) fflush(stdout);
}

/* After the last step: what rank 0 owes. */
static int finish(struct training *t, double *accuracy, double *loss, struct err *err)
{
        int wanted[3] = { t->options->evaluate, t->options->weights_out != NULL,
                          t->options->export_file != NULL };
        bool takes_part = t->world.rank == 0 || t->stages != NULL;
        int r = 0;

        if (t->stages != NULL) /* all stages work for what rank 0 owes */
                MPI_Bcast(wanted, 3, MPI_INT, 0, MPI_COMM_WORLD);
        if (takes_part && wanted[0])
                r = training_evaluate(t, accuracy, loss, err);
        if (r == 0 && takes_part && wanted[1])
                r = weights_write(t, t->options->weights_out, err);
        if (r == 0 && takes_part && wanted[2])
                r = export_run(t, err);
        return r < 0 ? r : record_close(&t->record, err);
}

static int train(struct training *t, const char *program, struct err *err)
{
        const struct strategy *strategy = strategy_find(t->options->strategy);
        double accuracy = NAN, loss = NAN;
        int r;

        training_say_tiles(t);
        if (t->world.parallel)
                patience_gather();
        t->record.start_usec = record_now();
        r = strategy->run(t, err);
        if (r == 0) {
                ring_end(t);
                r = stream_end(t, err);
        }
        t->seconds = record_training_seconds(&t->record);
        if (r == 0 && t->stopped)
                return record_close(&t->record, err);
        if (r == 0)
                r = finish(t, &accuracy, &loss, err);
        if (r < 0 && t->agreed_error) {
                if (t->world.rank == 0)
                        say(program, err);
                return r;
        }
        if (r < 0) { /* others may be waiting for this rank: nobody is left hanging */
                if (t->world.size > 1)
                        (void) fprintf(stderr, "%s: rank %d: %s\n", program, t->world.rank, err->msg);
                else
                        say(program, err);
                world_abort(&t->world, code_of(r));
        }
        report_traffic(t);
        report(t, accuracy, loss);
        return 0;
}

/* Each rank measures by itself: others may be waiting for one that fails. */
static void measure(struct training *t, const char *program, struct err *err)
{
        int r = measure_run(t, err);

        if (r == 0)
                return;
        say(program, err);
        world_abort(&t->world, code_of(r));
}

static void print_line(void *context, const char *line)
{
        (void) context;
        puts(line);
}

static void explain_fusion(struct training *t)
{
        struct model m;
        struct model_size size = dataset_size(t->data);
        struct err err = { 0 };

        if (t->world.rank != 0 || model_build(t->options->model, &size, &m, &err) < 0)
                return;
        if (t->options->activation != NULL)
                model_activate(&m, t->options->activation);
        model_fuse(&m, &t->rules, print_line, NULL);
}

static int test_operators(const struct train_options *o, const char *program)
{
        struct backend_options options = train_options_backend(o, 1, 0);
        struct backend b;
        struct fusion_table rules;
        struct preset preset;
        struct err err = { 0 };
        int failed = tuned_backend_open(o, &options, &b, &preset, &err);

        if (failed == 0) {
                failed = own_operators_load(o, &b, &rules, &err);
                if (failed == 0)
                        failed = conformance_run(&b, &rules, &err);
                backend_close(&b);
        }
        if (failed < 0)
                say(program, &err);
        return failed == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int list_devices(const struct train_options *o, const struct world *w, const char *program)
{
        struct backend_options options = train_options_backend(o, 1, (size_t) w->local_rank);
        struct err err = { 0 };
        int r;

        if (backend_linked.list == NULL)
                r = err_set(&err, -EINVAL, "--device: this build has no devices to choose from");
        else
                r = backend_linked.list(&options, &err);
        if (r < 0)
                say(program, &err);
        return r < 0 ? code_of(r) : EXIT_DONE;
}

static int run(struct train_options *o, const struct world *w, const char *program)
{
        struct training t;
        struct err err = { 0 };
        int r;

        if (o->strategy == NULL)
                o->strategy = w->size > 1 ? "allreduce" : "serial";
        r = rank_open(&t, o, w, &err);
        if (r < 0 && w->rank == 0)
                say(program, &err);
        if (r == 0 && o->explain_fusion) {
                explain_fusion(&t);
                r = o->measure ? fusion_gain_run(&t, &err) : 0;
                if (r < 0)
                        say(program, &err);
        } else if (r == 0 && o->measure)
                measure(&t, program, &err);
        else if (r == 0)
                r = train(&t, program, &err);
        rank_close(&t);
        return r < 0 ? code_of(r) : t.stopped ? STOP_EXIT_CODE : EXIT_DONE;
}

/* Ranks that want different things would wait for each other for ever. */
static int same_options(const struct world *w, const struct train_options *o, struct err *err)
{
        CLEANUP(free_p) char *line = train_options_line(o);
        int r = world_agree(w, line != NULL ? 0 : err_set(err, -ENOMEM, "no memory for the options"), err);

        return r < 0 ? r : world_same(w, line, "run", err);
}

/* Return: the exit code. */
static int carry_out(struct train_options *o, const struct world *w, const char *program)
{
        struct err err = { 0 };
        int r = 0;

        if (o->help || o->version) {
                if (w->rank == 0 && o->help)
                        train_options_help(program);
                else if (w->rank == 0)
                        printf("%s %s\n", program, REMUDA_VERSION);
                return EXIT_DONE;
        }
        if (train_options_lists_devices(o))
                return w->rank == 0 ? list_devices(o, w, program) : EXIT_DONE;
        if (o->conformance && !o->tune)
                return test_operators(o, program);
        if (!o->tune)
                return run(o, w, program);
        r = tune_run(o, &err);
        if (r < 0)
                say(program, &err);
        return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

int main(int argc, char **argv)
{
        static char lines[1 << 16]; /* each goes out as one: a terminal, as mpirun's, has 1,024 bytes */
        const char *program = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
        struct train_options o = { 0 };
        struct world w;
        struct err err = { 0 };
        char version[96];
        int r, code;

        if (backend_linked.prepare != NULL)
                backend_linked.prepare(argv);
        (void) signal(SIGPIPE, SIG_IGN); /* who read our progress may leave */
        (void) setvbuf(stdout, lines, _IOLBF, sizeof(lines));
        if (world_open(&w, &err) < 0) {
                say(program, &err);
                return EXIT_FAILED;
        }
        (void) text_format(version, sizeof(version), "%s/protocol-%d", REMUDA_VERSION, WORLD_PROTOCOL);
        r = world_same(&w, version, "version", &err);
        if (r == 0)
                r = world_agree(&w, train_options_parse(argc, argv, &o, &err), &err);
        if (r == 0)
                r = same_options(&w, &o, &err);
        if (r < 0 && w.rank == 0)
                say(program, &err);
        code = r < 0 ? EXIT_USAGE : EXIT_DONE;
        if (r == 0)
                code = carry_out(&o, &w, program);
        train_options_free(&o);
        world_close(&w);
        return code;
}
