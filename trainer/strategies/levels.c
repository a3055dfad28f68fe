/* Pieces on their way through three stages; whoever is called moves those that are under way. */
#include "trainer/strategies/levels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "trainer/record.h"

/* A rank that finds nothing to do so often leaves its core for a moment: mostly it is a member that waits for
 * its leader, which may need the core. A piece of 1 MiB takes 9 ms on a link of 1 Gbit/s. */
#define LOOKS      16
#define NAP_USEC   20
#define SLEEP_USEC 500 /* at most, where it is woken: what else travels needs the library */

/* Messages inside a group cost their number: large pieces, few at once. Through memory they are of the size
 * that goes between leaders without asking first (Open MPI over TCP: 64 KiB with the header), for the answer
 * would stand in line behind what is being sent; of many leaders not so large that memory grows with them. */
#define MESSAGE_PIECE ((size_t) 256 << 10)
#define MESSAGE_DEPTH 4
#define PART          ((size_t) 15 << 10)
#define PARTS_MAX     4

/* Groups of which each is on one host: the same answer for all, who cut the gradients into the same pieces.
 */
static bool open_memory(struct levels *l, size_t piece)
{
        int all = group_memory_open(&l->memory, l->group->members, piece);

        MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (!all)
                group_memory_close(&l->memory);
        return all;
}

int levels_open(struct levels *l, const struct group *g, const struct backend *b, float *values, size_t count,
                struct err *err)
{
        *l = (struct levels){ .group = g, .backend = b, .count = count };
        l->values = values;
        MPI_Comm_dup(g->members, &l->down);
        l->piece = PART * (g->count < PARTS_MAX ? g->count : PARTS_MAX);
        l->in_memory = open_memory(l, l->piece);
        l->piece = l->in_memory ? l->piece : MESSAGE_PIECE;
        l->depth = l->in_memory ? GROUP_MEMORY_DEPTH : MESSAGE_DEPTH;
        l->piece_count = (count + l->piece - 1) / l->piece;
        if (g->leader) {
                MPI_Comm_rank(g->all_leaders, &l->leader);
                MPI_Comm_size(g->all_leaders, &l->leader_count);
                l->received = calloc(l->depth * l->piece, sizeof(*l->received));
        }
        (void) prctl(PR_SET_TIMERSLACK, 1000UL); /* of this thread: otherwise a nap is three times as long */
        return l->received != NULL || !g->leader ? 0 : err_set(err, -ENOMEM, "no memory for the exchange");
}

void levels_close(struct levels *l)
{
        bool under_way =
                l->finished < l->started; /* after an error: messages may still come, the world ends */

        if (l->group != NULL) {
                (void) prctl(PR_SET_TIMERSLACK, 0UL); /* the usual one */
                MPI_Comm_free(&l->down);
                if (!under_way)
                        group_memory_close(&l->memory);
        }
        if (!under_way)
                free(l->received);
        *l = (struct levels){ 0 };
}

/* Piece 0 is the end of the gradients, the last piece their beginning. */
static size_t piece_begin(const struct levels *l, size_t piece)
{
        return piece + 1 < l->piece_count ? l->count - (piece + 1) * l->piece : 0;
}

static int piece_size(const struct levels *l, size_t piece)
{
        return (int) (l->count - piece * l->piece - piece_begin(l, piece));
}

static struct levels_piece *piece_of(struct levels *l, size_t piece)
{
        return &l->pieces[piece % l->depth];
}

/* The piece's number since the exchange was opened. */
static uint64_t serial_of(const struct levels *l, size_t piece)
{
        return l->pieces_before + piece;
}

/* Where a leader has the sum of its group. */
static float *sum_of(struct levels *l, size_t piece)
{
        return l->in_memory ? group_memory_sum(&l->memory, serial_of(l, piece))
                            : l->values + piece_begin(l, piece);
}

/* Return: false if it has to wait. */
static bool start_piece(struct levels *l, size_t piece)
{
        float *values = l->values + piece_begin(l, piece);
        struct levels_piece *p = piece_of(l, piece);

        if (l->in_memory &&
            !group_memory_offer(&l->memory, serial_of(l, piece), values, (size_t) piece_size(l, piece)))
                return false;
        l->steps++;
        *p = (struct levels_piece){ .stage = LEVELS_ADD, .requests = { MPI_REQUEST_NULL, MPI_REQUEST_NULL } };
        if (!l->in_memory)
                MPI_Ireduce(l->group->leader ? MPI_IN_PLACE : values, values, piece_size(l, piece), MPI_FLOAT,
                            MPI_SUM, 0, l->group->members, &p->requests[0]);
        return true;
}

/* The part of a piece that a leader sends or gets in a step of the ring; L leaders, parts 0..L-1.
 *
 * First every part is added up: in step s = 0..L-2 leader r sends part r-s, as far as it is added up, and
 * adds what comes to part r-s-1; then part r+1 is whole there. Then whole parts go around: in step s = L-1 +
 * k leader r sends part r+1-k and gets part r-k. L = 2, leader 0: sends 0, adds to 1; sends 1, gets 0. */
static int ring_part(const struct levels *l, int step, bool sent)
{
        int all = l->leader_count, part = l->leader - step - (sent ? 0 : 1);

        if (step >= all - 1) /* r+1-k = r-s+L */
                part = l->leader - (step - (all - 1)) + (sent ? 1 : 0);
        return ((part % all) + all) % all;
}

static size_t part_begin(const struct levels *l, size_t piece, int part)
{
        return (size_t) piece_size(l, piece) * (size_t) part / (size_t) l->leader_count;
}

static int part_size(const struct levels *l, size_t piece, int part)
{
        return (int) (part_begin(l, piece, part + 1) - part_begin(l, piece, part));
}

static float *received_of(struct levels *l, size_t piece)
{
        return l->received + piece % l->depth * l->piece;
}

static void start_ring_step(struct levels *l, size_t piece)
{
        struct levels_piece *p = piece_of(l, piece);
        float *values = sum_of(l, piece);
        int out = ring_part(l, p->step, true), in = ring_part(l, p->step, false), all = l->leader_count;
        float *to = p->step < all - 1 ? received_of(l, piece) : values + part_begin(l, piece, in);

        MPI_Irecv(to, part_size(l, piece, in), MPI_FLOAT, (l->leader + all - 1) % all, (int) (piece % 32768),
                  l->group->all_leaders, &p->requests[0]);
        MPI_Isend(values + part_begin(l, piece, out), part_size(l, piece, out), MPI_FLOAT,
                  (l->leader + 1) % all, (int) (piece % 32768), l->group->all_leaders, &p->requests[1]);
}

static void end_ring_step(struct levels *l, size_t piece)
{
        struct levels_piece *p = piece_of(l, piece);
        int in = ring_part(l, p->step, false);
        float *values = sum_of(l, piece) + part_begin(l, piece, in);
        const float *received = received_of(l, piece);

        if (p->step < l->leader_count - 1)
                backend_add(l->backend, (size_t) part_size(l, piece, in), received, values);
        p->step++;
}

/* Has the piece before it got as far? */
static bool may_spread(struct levels *l, size_t piece)
{
        return piece == l->finished || piece_of(l, piece - 1)->stage >= LEVELS_SPREAD;
}

/* Is what a piece is at done? */
static bool is_done(struct levels *l, size_t piece)
{
        struct levels_piece *p = piece_of(l, piece);
        size_t size = (size_t) piece_size(l, piece);
        int done = 1;

        if (l->in_memory && p->stage == LEVELS_ADD)
                return group_memory_add(&l->memory, l->backend, serial_of(l, piece), size);
        if (l->in_memory && p->stage == LEVELS_SPREAD)
                return group_memory_take(&l->memory, serial_of(l, piece), l->values + piece_begin(l, piece),
                                         size);
        MPI_Testall(2, p->requests, &done, MPI_STATUSES_IGNORE);
        return done;
}

static void start_spreading(struct levels *l, size_t piece)
{
        struct levels_piece *p = piece_of(l, piece);

        p->stage = LEVELS_SPREAD;
        if (!l->in_memory)
                MPI_Ibcast(l->values + piece_begin(l, piece), piece_size(l, piece), MPI_FLOAT, 0, l->down,
                           &p->requests[0]);
        else if (l->group->leader)
                group_memory_whole(&l->memory, serial_of(l, piece));
}

/* What it was at is done: what comes next begins. Return: false if it has to wait for another piece. */
static bool go_on(struct levels *l, size_t piece)
{
        struct levels_piece *p = piece_of(l, piece);

        l->steps++;
        if (p->stage == LEVELS_SPREAD) {
                p->stage = LEVELS_DONE;
                return true;
        }
        if (p->stage == LEVELS_RING && p->step < 2 * (l->leader_count - 1))
                end_ring_step(l, piece);
        else if (p->stage == LEVELS_ADD)
                p->stage = LEVELS_RING;
        if (p->step < 2 * (l->leader_count - 1)) {
                start_ring_step(l, piece);
                return true;
        }
        if (!may_spread(l, piece)) {
                l->steps--;
                return false;
        }
        start_spreading(l, piece);
        return true;
}

static void advance(struct levels *l, size_t piece)
{
        while (piece_of(l, piece)->stage != LEVELS_DONE)
                if (!is_done(l, piece) || !go_on(l, piece))
                        return;
}

/* Every piece that is under way, and those that may be. Return: has any gone on? Others may wait for what
 * this rank has sent them before, samples or words: the library moves it, in memory or not. */
static bool progress(struct levels *l)
{
        size_t steps = l->steps;
        int none;

        if (l->in_memory)
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, l->down, &none, MPI_STATUS_IGNORE);
        for (size_t i = l->finished; i < l->started; i++)
                advance(l, i);
        while (l->finished < l->started && piece_of(l, l->finished)->stage == LEVELS_DONE)
                l->finished++;
        while (l->started < l->piece_count && l->started < l->finished + l->depth &&
               piece_begin(l, l->started) >= l->from && start_piece(l, l->started))
                l->started++;
        return l->steps != steps;
}

void levels_begin(struct levels *l)
{
        l->from = l->count;
        l->started = l->finished = 0;
        l->begin_usec = l->called_usec = 0;
}

void levels_ready(void *context, const struct model_node *node)
{
        struct levels *l = context;
        uint64_t at;

        if (node->weight_count > 0 || node->bias_count > 0)
                l->from = node->weight_count > 0 ? node->weight : node->bias;
        if (l->from == 0) /* the pass is over: from here on there is nothing left but waiting */
                return;
        if (l->started == 0 && piece_begin(l, 0) < l->from)
                return;
        at = record_now();
        if (l->begin_usec == 0)
                l->begin_usec = at;
        progress(l);
        l->called_usec += record_now() - at;
}

/* Is anything on its way between the leaders? Only who asks moves it. */
static bool in_ring(struct levels *l)
{
        for (size_t i = l->finished; i < l->started; i++)
                if (piece_of(l, i)->stage == LEVELS_RING)
                        return true;
        return false;
}

static void rest(struct levels *l)
{
        const struct timespec nap = { .tv_nsec = NAP_USEC * 1000L };

        if (l->in_memory)
                group_memory_sleep(&l->memory, in_ring(l) ? NAP_USEC : SLEEP_USEC);
        else
                (void) nanosleep(&nap, NULL);
}

void levels_wait(struct levels *l)
{
        l->from = 0;
        for (uint64_t idle = 0; l->finished < l->piece_count;) {
                if (l->in_memory)
                        group_memory_look(&l->memory);
                idle = progress(l) ? 0 : idle + 1;
                if (idle > LOOKS)
                        rest(l);
        }
        l->pieces_before += l->piece_count;
}
