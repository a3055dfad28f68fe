/* Parameter servers: ranks 0..N-1 hold a slice of the parameters each, all other ranks are workers.
 *
 * A worker sends the slices of its weighted gradient to their servers and waits for new parameters from each.
 *
 * ps-sync: a server waits for all workers, adds their gradients in rank order (as serial --shares does, bit
 * for bit), updates once and answers all. ps-async: a gradient is applied on arrival and answered at once, to
 * its sender only. ps-ssp: the same, but the answer waits while the sender is more than `staleness` gradients
 * ahead of the slowest worker (Ho et al. 2013); staleness 0 keeps all within one step.
 *
 * The bound: a worker's clock counts its gradients in the parameters. Invariant: whoever is answered has
 * clock - slowest clock <= S, and as nobody computes unanswered, no gradient is made of parameters that miss
 * more than S of another's.
 *
 *     S = 1, clocks of three workers:  0 0 0 -> 1 0 0 answered -> 2 0 0 waits (2 - 0 > 1)
 *                                      -> 2 1 0 answered, the first still waits -> 2 1 1: both are
 * --clock-log shows it: its last two columns never differ by more than S. With checkpoints, async and ssp
 * also gather all workers before each one, so that it is a state of the run.
 *
 * SIGTERM (trainer/stop.h): in ps-sync all ranks go in step. In async and ssp whoever gets it tells server 0,
 * which names a step to end after, one more than it has from anybody: no worker can have sent more before it
 * is told so, with the next answer. All do that step and no other, and the servers save it. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/checkpoint.h"
#include "trainer/data/distribution.h"
#include "trainer/in_step/in_step.h"
#include "trainer/in_step/patience.h"
#include "trainer/operators/vector.h"
#include "trainer/outputs.h"
#include "trainer/strategies/group.h"
#include "trainer/strategy.h"

#define CLOCK_FIELD 2 /* of a clock log's line */

enum { TAG_GRADIENT = 1, TAG_PARAMETERS, TAG_GATHER, TAG_STOP, TAG_LAST, TAG_LAST_OF_SERVERS };

static size_t slice_begin(const struct training *t, size_t server)
{
        return t->model.parameter_count * server / t->options->servers;
}

static int slice_count(const struct training *t, size_t server)
{
        return (int) (slice_begin(t, server + 1) - slice_begin(t, server));
}

struct ending { /* of a worker */
        struct in_step in_step;
        bool sync;     /* all ranks are in step: otherwise in_step.stop alone is open */
        bool said;     /* to server 0, that this rank shall stop */
        uint64_t last; /* step to end after, as server 0 said with its answer; 0 = not said */
};

/* Return: how many requests. */
static int exchange_with_servers(struct training *t, struct ending *ending, MPI_Request *requests)
{
        size_t servers = t->options->servers, count = 2 * servers;

        backend_to_host(&t->backend, t->parameters);
        for (size_t s = 0; s < servers; s++) {
                MPI_Irecv(t->parameters + slice_begin(t, s), slice_count(t, s), MPI_FLOAT, (int) s,
                          TAG_PARAMETERS, MPI_COMM_WORLD, &requests[s]);
                MPI_Isend(t->gradients + slice_begin(t, s), slice_count(t, s), MPI_FLOAT, (int) s,
                          TAG_GRADIENT, MPI_COMM_WORLD, &requests[servers + s]);
        }
        if (ending->in_step.stop.listens && !ending->sync)
                MPI_Irecv(&ending->last, 1, MPI_UINT64_T, 0, TAG_LAST, MPI_COMM_WORLD, &requests[count++]);
        return (int) count;
}

static int fetch_parameters(struct training *t, MPI_Request *requests, struct err *err)
{
        uint64_t at = record_now();

        backend_to_host(&t->backend, t->parameters);
        for (size_t s = 0; s < t->options->servers; s++)
                MPI_Irecv(t->parameters + slice_begin(t, s), slice_count(t, s), MPI_FLOAT, (int) s,
                          TAG_PARAMETERS, MPI_COMM_WORLD, &requests[s]);
        /* the first batch is loaded while the parameters travel */
        if (distribution_step(t, t->step, err) < 0)
                return err->code;
        training_prefetch(t, t->step, shares_worker(&t->shares, t->world.rank));
        patience_wait(requests, (int) t->options->servers);
        backend_to_device(&t->backend, t->parameters);
        (void) record_done(&t->record, RECORD_EXCHANGE, t->step, at);
        return 0;
}

/* A worker's step: in a group the members add up their gradients and the leader alone speaks to the servers.
 */
static int worker_step(struct training *t, const struct group *g, struct ending *ending,
                       MPI_Request *requests, struct err *err)
{
        size_t count = t->model.parameter_count;
        uint64_t at;
        int r = training_gradient(t, t->step, shares_worker(&t->shares, t->world.rank), NULL, err);

        if (r < 0)
                return r;
        at = record_now();
        group_add(g, t->gradients, count);
        if (g->leader)
                patience_wait(requests, exchange_with_servers(t, ending, requests));
        group_spread(g, t);
        (void) record_done(&t->record, RECORD_EXCHANGE, t->step, at);
        return training_finish_step(t, t->step, err);
}

/* After a step where ranks go on their own: is it the last one for all? The same on all. */
static bool worker_ends(const struct training *t, const struct group *g, struct ending *ending)
{
        const struct stop *stop = &ending->in_step.stop;
        int requested = 1;

        if (!stop->listens)
                return false;
        if (g->grouped)
                MPI_Bcast(&ending->last, 1, MPI_UINT64_T, 0, g->members);
        if (ending->last == 0 && !ending->said && t->step < t->last_step && stop_requested(stop)) {
                MPI_Send(&requested, 1, MPI_INT, 0, TAG_STOP, MPI_COMM_WORLD);
                ending->said = true;
        }
        return ending->last > 0 && t->step >= ending->last;
}

static int run_worker(struct training *t, const struct group *g, bool sync, struct err *err)
{
        CLEANUP(free_p) MPI_Request *requests = calloc(2 * t->options->servers + 1, sizeof(MPI_Request));
        struct ending ending = { .sync = sync };
        int r = requests != NULL ? 0
                                 : err_set(err, -ENOMEM, "no memory for %zu servers", t->options->servers);

        if (r == 0 && g->leader)
                r = fetch_parameters(t, requests, err);
        if (r == 0)
                group_spread(g, t);
        if (sync)
                in_step_open(&ending.in_step, t);
        else
                stop_open(&ending.in_step.stop, t);
        while (r == 0 && t->step < t->last_step && !t->stopped) {
                r = worker_step(t, g, &ending, requests, err);
                t->step += r == 0;
                if (r == 0 && sync)
                        r = in_step_next(&ending.in_step, t, err);
                else if (r == 0)
                        t->stopped = worker_ends(t, g, &ending);
        }
        if (r == 0)
                in_step_close(&ending.in_step);
        return r;
}

struct server {
        struct training *t;
        size_t sender_count; /* workers, or leaders of groups */
        const int *senders;  /* their ranks; borrowed */
        size_t from;
        int count;    /* floats of the slice */
        float *inbox; /* one slice a worker */
        MPI_Request *requests, *starts;
        uint64_t *clocks; /* gradients of each worker in the parameters */
        uint64_t *noted;  /* of these, how many have their line in the clock log */
        bool *waiting;    /* for an answer */
        FILE *clock_log;
        uint64_t log_usec; /* of the run that this one goes on from */
        struct in_step in_step;
        bool names_last; /* server 0 may say when all end */
        uint64_t end;    /* steps to do: all, or as many as server 0 said */
        uint64_t last;   /* what it said; 0 = nothing */
        int requested;   /* by a rank, to server 0 */
};

static void expect(struct server *s, size_t worker)
{
        MPI_Irecv(s->inbox + worker * (size_t) s->count, s->count, MPI_FLOAT, s->senders[worker],
                  TAG_GRADIENT, MPI_COMM_WORLD, &s->requests[worker]);
}

static uint64_t slowest(const struct server *s)
{
        uint64_t least = UINT64_MAX;

        for (size_t i = 0; i < s->sender_count; i++)
                least = s->clocks[i] < least ? s->clocks[i] : least;
        return least;
}

static void send_parameters(struct server *s, size_t worker)
{
        MPI_Send(s->t->parameters + s->from, s->count, MPI_FLOAT, s->senders[worker], TAG_PARAMETERS,
                 MPI_COMM_WORLD);
}

/* The first parameters travel while the first samples do; whoever is served first may be slower than another.
 */
static int start_workers(struct server *s, struct err *err)
{
        int r;

        for (size_t i = 0; i < s->sender_count; i++)
                MPI_Isend(s->t->parameters + s->from, s->count, MPI_FLOAT, s->senders[i], TAG_PARAMETERS,
                          MPI_COMM_WORLD, &s->starts[i]);
        r = distribution_step(s->t, s->t->step, err);
        if (r == 0) /* before a gradient changes them */
                MPI_Waitall((int) s->sender_count, s->starts, MPI_STATUSES_IGNORE);
        return r;
}

/* A line for the gradient that came last, once. */
static void note_clock(struct server *s, size_t worker)
{
        uint64_t now_usec = s->log_usec + record_now() - s->t->record.start_usec;

        if (s->clock_log == NULL || s->noted[worker] == s->clocks[worker])
                return;
        s->noted[worker] = s->clocks[worker];
        (void) fprintf(s->clock_log, "%llu %d %llu %llu\n", (unsigned long long) now_usec, s->senders[worker],
                       (unsigned long long) s->clocks[worker], (unsigned long long) slowest(s));
}

static void answer(struct server *s, size_t worker)
{
        note_clock(s, worker);
        s->waiting[worker] = false;
        if (s->clocks[worker] < s->end)
                expect(s, worker);
        send_parameters(s, worker);
        if (s->names_last && s->t->world.rank == 0)
                MPI_Send(&s->last, 1, MPI_UINT64_T, s->senders[worker], TAG_LAST, MPI_COMM_WORLD);
}

static void apply(struct server *s, const float *gradient, uint64_t step)
{
        struct training *t = s->t;
        float rate = training_rate(t, step);
        float *velocity = t->velocity != NULL ? t->velocity + s->from : NULL;

        /* gradients arrive in the host's memory, and other workers' may arrive meanwhile */
        if (backend_has_own_memory(&t->backend))
                vector_update((size_t) s->count, rate, t->momentum, gradient, velocity,
                              t->parameters + s->from);
        else
                t->backend.kernels.update(t->backend.state, (size_t) s->count, rate, t->momentum, gradient,
                                          velocity, t->parameters + s->from);
}

/* Rank 0 gets the slices of the other servers; collective over servers. */
static void gather_slices(struct server *s, float *whole)
{
        struct training *t = s->t;

        if (whole == NULL)
                return;
        if (t->world.rank != 0) {
                MPI_Send(whole + s->from, s->count, MPI_FLOAT, 0, TAG_GATHER, MPI_COMM_WORLD);
                return;
        }
        for (size_t other = 1; other < t->options->servers; other++)
                MPI_Recv(whole + slice_begin(t, other), slice_count(t, other), MPI_FLOAT, (int) other,
                         TAG_GATHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* When the manager looks for new files. */
static bool is_between_epochs(const struct server *s, uint64_t clock)
{
        uint64_t epoch;
        size_t epoch_step;

        sampler_locate(s->t->sampler, clock, &epoch, &epoch_step);
        return s->t->options->poll > 0 && epoch_step == 0;
}

static bool is_meeting(const struct server *s, uint64_t clock)
{
        return is_between_epochs(s, clock) || training_checkpoint_due(s->t, clock);
}

/* All clocks are at `step`. What a checkpoint has is in the logs before: a run may be killed in between. */
static int save(struct server *s, uint64_t step, struct err *err)
{
        for (size_t i = 0; i < s->sender_count; i++)
                note_clock(s, i);
        if (s->clock_log != NULL)
                (void) fflush(s->clock_log);
        gather_slices(s, s->t->parameters);
        gather_slices(s, s->t->velocity);
        return s->t->world.rank == 0 ? checkpoint_write(s->t, step, err) : 0;
}

static int sync_step(struct server *s, struct err *err)
{
        struct training *t = s->t;
        float *sum = s->inbox;
        uint64_t at = record_now();

        if (distribution_step(t, t->step, err) < 0)
                return err->code;
        s->end = t->last_step; /* new files may have joined */
        patience_wait(s->requests, (int) s->sender_count);
        at = record_done(&t->record, RECORD_WAIT, t->step, at);
        for (size_t i = 1; i < s->sender_count; i++)
                backend_add(&t->backend, (size_t) s->count, s->inbox + i * (size_t) s->count, sum);
        apply(s, sum, t->step);
        (void) record_done(&t->record, RECORD_UPDATE, t->step, at);
        for (size_t i = 0; i < s->sender_count; i++)
                s->clocks[i]++;
        if (training_checkpoint_due(t, t->step + 1) && save(s, t->step + 1, err) < 0)
                return err->code;
        for (size_t i = 0; i < s->sender_count; i++)
                answer(s, i);
        return t->options->servers == 1 ? training_finish_step(t, t->step, err) : 0;
}

/* What is expected and will not come: all have stopped. */
static void forget_expected(struct server *s)
{
        for (size_t i = 0; i <= s->sender_count; i++)
                if (s->requests[i] != MPI_REQUEST_NULL) {
                        MPI_Cancel(&s->requests[i]);
                        MPI_Wait(&s->requests[i], MPI_STATUS_IGNORE);
                }
}

/* All ranks have done `step` steps and end. */
static int end_early(struct server *s, uint64_t step, struct err *err)
{
        s->t->step = step;
        s->t->stopped = true;
        return step == 0 || training_checkpoint_due(s->t, step) ? 0 : save(s, step, err);
}

static int run_sync(struct server *s, struct err *err)
{
        struct training *t = s->t;
        int r = 0;

        for (size_t i = 0; i < s->sender_count; i++)
                expect(s, i);
        in_step_open(&s->in_step, t);
        while (r == 0 && t->step < t->last_step && !t->stopped) {
                r = sync_step(s, err);
                t->step += r == 0;
                if (r == 0)
                        r = in_step_next(&s->in_step, t, err);
                if (r == 0 && t->stopped)
                        r = end_early(s, t->step, err);
        }
        if (r == 0) {
                forget_expected(s);
                in_step_close(&s->in_step);
        }
        return r;
}

/* Answers everyone who may go on. Return: 0, or the error of a checkpoint. */
static int answer_waiting(struct server *s, uint64_t bound, struct err *err)
{
        struct training *t = s->t;
        uint64_t least = slowest(s);

        if (is_meeting(s, least) && least > t->step) {
                t->step = least;
                if (training_checkpoint_due(t, least) && save(s, least, err) < 0)
                        return err->code;
        }
        for (size_t i = 0; i < s->sender_count; i++) {
                bool meets = is_meeting(s, s->clocks[i]) && least < s->clocks[i];

                if (s->waiting[i] && s->clocks[i] - least <= bound && !meets)
                        answer(s, i);
        }
        if (distribution_step(t, least, err) < 0)
                return err->code;
        if (s->last == 0) /* new files may have joined */
                s->end = t->last_step;
        return 0;
}

/* Gradients of a whole batch's worth have come, of whomever: as far as one step of a synchronous run. */
static int note_progress(struct server *s, uint64_t arrived, struct err *err)
{
        if (s->t->options->servers > 1 || arrived % s->sender_count != 0)
                return 0;
        return training_finish_step(s->t, s->t->first_step + arrived / s->sender_count - 1, err);
}

/* Beside the gradients: server 0 gets a word from who shall stop, the others which step is the last. */
static void expect_word(struct server *s)
{
        MPI_Request *word = &s->requests[s->sender_count];

        if (!s->names_last)
                return;
        if (s->t->world.rank == 0)
                MPI_Irecv(&s->requested, 1, MPI_INT, MPI_ANY_SOURCE, TAG_STOP, MPI_COMM_WORLD, word);
        else
                MPI_Irecv(&s->last, 1, MPI_UINT64_T, 0, TAG_LAST_OF_SERVERS, MPI_COMM_WORLD, word);
}

static void name_last(struct server *s)
{
        uint64_t most = 0;

        for (size_t i = 0; i < s->sender_count; i++)
                most = s->clocks[i] > most ? s->clocks[i] : most;
        most++;
        if (is_between_epochs(s, most)) /* all meet there, and those who stop would be waited for */
                most++;
        if (most >= s->t->last_step) /* it ends there anyway */
                return;
        s->end = s->last = most;
        for (size_t other = 1; other < s->t->options->servers; other++)
                MPI_Send(&s->last, 1, MPI_UINT64_T, (int) other, TAG_LAST_OF_SERVERS, MPI_COMM_WORLD);
}

/* A word came, or this server may have been asked to stop itself. */
static void heed_word(struct server *s, bool came)
{
        int requested = 1;

        if (came)
                s->requests[s->sender_count] = MPI_REQUEST_NULL;
        if (s->t->world.rank == 0) {
                if (s->last == 0 && (s->requested != 0 || stop_requested(&s->in_step.stop)))
                        name_last(s);
                if (came)
                        expect_word(s);
        } else if (came) {
                s->end = s->last;
        } else if (s->requested == 0 && stop_requested(&s->in_step.stop)) {
                MPI_Send(&requested, 1, MPI_INT, 0, TAG_STOP, MPI_COMM_WORLD);
                s->requested = 1;
        }
}

static int run_on_arrival(struct server *s, uint64_t bound, struct err *err)
{
        struct training *t = s->t;
        uint64_t arrived = 0;
        int r = 0;

        stop_open(&s->in_step.stop, t);
        s->names_last = s->in_step.stop.listens;
        for (size_t i = 0; i < s->sender_count; i++)
                expect(s, i);
        expect_word(s);
        while (r == 0 && slowest(s) < s->end) {
                uint64_t at = record_now(), clock;
                int worker = stream_any(t, s->requests, (int) s->sender_count + s->names_last, err);

                if (worker < 0)
                        return worker;
                if (s->names_last)
                        heed_word(s, (size_t) worker == s->sender_count);
                if ((size_t) worker == s->sender_count)
                        continue;
                clock = s->clocks[worker]++;
                at = record_done(&t->record, RECORD_WAIT, clock, at);
                apply(s, s->inbox + (size_t) worker * (size_t) s->count, clock);
                (void) record_done(&t->record, RECORD_UPDATE, clock, at);
                s->waiting[worker] = true;
                r = answer_waiting(s, bound, err);
                if (r == 0)
                        r = note_progress(s, ++arrived, err);
        }
        if (r < 0)
                return r;
        forget_expected(s);
        in_step_close(&s->in_step);
        t->step = t->last_step;
        return s->end < t->last_step ? end_early(s, s->end, err) : 0;
}

/* The time of the log's last line; what is written next comes after it. */
static uint64_t last_usec(FILE *f)
{
        char line[128];
        uint64_t usec = 0;

        rewind(f);
        while (fgets(line, sizeof(line), f) != NULL)
                usec = strtoull(line, NULL, 10);
        (void) fseek(f, 0, SEEK_END);
        return usec;
}

static int open_server(struct server *s, struct err *err)
{
        const char *log = s->t->options->clock_log;
        size_t workers = s->sender_count;
        char path[4096];

        s->inbox = backend_allocate(&s->t->backend, workers * (size_t) s->count * sizeof(float) + 1);
        s->requests = calloc(workers + 1, sizeof(MPI_Request));
        s->starts = calloc(workers, sizeof(MPI_Request));
        s->clocks = calloc(workers, sizeof(*s->clocks));
        s->noted = calloc(workers, sizeof(*s->noted));
        s->waiting = calloc(workers, sizeof(*s->waiting));
        if (s->inbox == NULL || s->requests == NULL || s->starts == NULL || s->clocks == NULL ||
            s->noted == NULL || s->waiting == NULL)
                return err_set(err, -ENOMEM, "no memory for the gradients of %zu workers", workers);
        s->end = s->t->last_step;
        s->requests[workers] = MPI_REQUEST_NULL;
        for (size_t i = 0; i < workers; i++) {
                s->requests[i] = s->starts[i] = MPI_REQUEST_NULL;
                s->clocks[i] = s->noted[i] = s->t->step;
        }
        if (log == NULL)
                return 0;
        if (!outputs_clock_log(s->t->options, s->t->world.rank, path, sizeof(path)))
                return err_set(err, -EINVAL, "--clock-log: the file's name is too long");
        s->clock_log = s->t->step > 0 ? fopen(path, "r+e") : NULL;
        if (s->clock_log != NULL && record_cut_log(s->clock_log, CLOCK_FIELD, s->t->step + 1) < 0)
                return err_set(err, -EIO, "--clock-log: file '%s' cannot be cut back: %m", path);
        if (s->clock_log != NULL)
                s->log_usec = last_usec(s->clock_log);
        if (s->clock_log == NULL)
                s->clock_log = fopen(path, "we");
        return s->clock_log != NULL ? 0 : err_set(err, -errno, "--clock-log: file '%s': %m", path);
}

static int close_server(struct server *s, struct err *err)
{
        int r = 0;

        if (s->clock_log != NULL && fclose(s->clock_log) != 0)
                r = err_set(err, -EIO, "--clock-log: not written whole: %m");
        backend_release(&s->t->backend, s->inbox);
        free(s->requests);
        free(s->starts);
        free(s->clocks);
        free(s->noted);
        free(s->waiting);
        return r;
}

static int run_server(struct training *t, const struct group *g, bool sync, uint64_t bound, struct err *err)
{
        struct server s = { .t = t,
                            .sender_count = g->count,
                            .senders = g->leaders,
                            .from = slice_begin(t, (size_t) t->world.rank),
                            .count = slice_count(t, (size_t) t->world.rank) };
        int r, closed;

        backend_to_host(&t->backend, t->parameters); /* a server works on the processor */
        r = open_server(&s, err);
        if (r == 0)
                r = start_workers(&s, err);
        if (r == 0)
                r = sync ? run_sync(&s, err) : run_on_arrival(&s, bound, err);
        if (r == 0) {
                gather_slices(&s, t->parameters);
                backend_to_device(&t->backend, t->parameters);
        }
        closed = close_server(&s, err);
        return r < 0 ? r : closed;
}

static int run(struct training *t, bool sync, uint64_t bound, struct err *err)
{
        struct group g;
        int r;

        if (!t->world.parallel)
                return err_set(err, -EINVAL,
                               "--strategy %s wants %zu servers and a worker or more, started by mpirun",
                               t->options->strategy, t->options->servers);
        r = world_agree(&t->world, group_open(&g, t, err), err);
        t->agreed_error = r < 0;
        if (r == 0)
                r = shares_computes(&t->shares, t->world.rank) ? run_worker(t, &g, sync, err)
                                                               : run_server(t, &g, sync, bound, err);
        group_close(&g);
        return r;
}

static int ps_sync(struct training *t, struct err *err)
{
        return run(t, true, 0, err);
}

static int ps_async(struct training *t, struct err *err)
{
        return run(t, false, UINT64_MAX, err);
}

static int ps_ssp(struct training *t, struct err *err)
{
        return run(t, false, t->options->staleness, err);
}

const struct strategy strategy_ps_sync = { .name = "ps-sync", .run = ps_sync, .served = true, .live = true };
const struct strategy strategy_ps_async = { .name = "ps-async", .run = ps_async, .served = true };
const struct strategy strategy_ps_ssp = { .name = "ps-ssp", .run = ps_ssp, .served = true };
