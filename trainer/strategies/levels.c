/* Pieces on their way through three stages; whoever is called moves those that are under way. */
#include "trainer/strategies/levels.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "trainer/record.h"

/* A rank that finds nothing to do so often leaves its core for a moment: mostly it is a member that waits for
 * its leader, which may need the core. A piece takes 9 ms on a link of 1 Gbit/s. */
#define LOOKS    16
#define NAP_NSEC 20000

int levels_open(struct levels *l, const struct group *g, const struct backend *b, float *values, size_t count,
                struct err *err)
{
        *l = (struct levels){ .group = g,
                              .backend = b,
                              .count = count,
                              .piece_count = (count + LEVELS_PIECE - 1) / LEVELS_PIECE,
                              .received = calloc(LEVELS_DEPTH * LEVELS_PIECE, sizeof(*l->received)) };
        l->values = values;
        MPI_Comm_dup(g->members, &l->down);
        if (g->leader) {
                MPI_Comm_rank(g->all_leaders, &l->leader);
                MPI_Comm_size(g->all_leaders, &l->leader_count);
        }
        return l->received != NULL ? 0 : err_set(err, -ENOMEM, "no memory for the exchange");
}

void levels_close(struct levels *l)
{
        if (l->group != NULL)
                MPI_Comm_free(&l->down);
        free(l->received);
        *l = (struct levels){ 0 };
}

/* Piece 0 is the end of the gradients, the last piece their beginning. */
static size_t piece_begin(const struct levels *l, size_t piece)
{
        return piece + 1 < l->piece_count ? l->count - (piece + 1) * LEVELS_PIECE : 0;
}

static int piece_size(const struct levels *l, size_t piece)
{
        return (int) (l->count - piece * LEVELS_PIECE - piece_begin(l, piece));
}

static struct levels_piece *piece_of(struct levels *l, size_t piece)
{
        return &l->pieces[piece % LEVELS_DEPTH];
}

static void start_piece(struct levels *l, size_t piece)
{
        float *values = l->values + piece_begin(l, piece);
        struct levels_piece *p = piece_of(l, piece);

        l->steps++;
        *p = (struct levels_piece){ .stage = LEVELS_ADD, .requests = { MPI_REQUEST_NULL, MPI_REQUEST_NULL } };
        MPI_Ireduce(l->group->leader ? MPI_IN_PLACE : values, values, piece_size(l, piece), MPI_FLOAT,
                    MPI_SUM, 0, l->group->members, &p->requests[0]);
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
        return l->received + piece % LEVELS_DEPTH * LEVELS_PIECE;
}

static void start_ring_step(struct levels *l, size_t piece)
{
        struct levels_piece *p = piece_of(l, piece);
        float *values = l->values + piece_begin(l, piece);
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
        float *values = l->values + piece_begin(l, piece) + part_begin(l, piece, in);
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
        p->stage = LEVELS_SPREAD;
        MPI_Ibcast(l->values + piece_begin(l, piece), piece_size(l, piece), MPI_FLOAT, 0, l->down,
                   &p->requests[0]);
        return true;
}

static void advance(struct levels *l, size_t piece)
{
        struct levels_piece *p = piece_of(l, piece);
        int done = 1;

        while (p->stage != LEVELS_DONE) {
                MPI_Testall(2, p->requests, &done, MPI_STATUSES_IGNORE);
                if (!done || !go_on(l, piece))
                        return;
        }
}

/* Every piece that is under way, and those that may be. Return: has any gone on? */
static bool progress(struct levels *l)
{
        size_t steps = l->steps;

        for (size_t i = l->finished; i < l->started; i++)
                advance(l, i);
        while (l->finished < l->started && piece_of(l, l->finished)->stage == LEVELS_DONE)
                l->finished++;
        while (l->started < l->piece_count && l->started < l->finished + LEVELS_DEPTH &&
               piece_begin(l, l->started) >= l->from)
                start_piece(l, l->started++);
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

void levels_wait(struct levels *l)
{
        const struct timespec nap = { .tv_nsec = NAP_NSEC };

        l->from = 0;
        for (uint64_t idle = 0; l->finished < l->piece_count;) {
                idle = progress(l) ? 0 : idle + 1;
                if (idle > LOOKS)
                        (void) nanosleep(&nap, NULL);
        }
}
