/* All ranks are workers: each segment of the weighted gradients is summed over the world as soon as backward
 * has finished its tensors, while earlier layers are still being computed. */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

#include "core/cleanup.h"
#include "trainer/group.h"
#include "trainer/strategy.h"

struct exchange {
        struct training *t;
        struct group group;
        size_t segment_count;
        size_t *ends; /* forward tensor index where segment i begins; it ends before ends of segment i-1 */
        size_t next;  /* segment to start next */
        size_t open_tensor; /* first forward tensor whose gradient is final */
        MPI_Request *requests;
        uint64_t begin_usec;
};

static void start_segment(struct exchange *x)
{
        struct training *t = x->t;
        size_t first = x->ends[x->next], end = x->next > 0 ? x->ends[x->next - 1] : t->model.tensor_count;
        size_t from = t->model.tensors[first].offset;
        size_t to = end < t->model.tensor_count ? t->model.tensors[end].offset : t->model.parameter_count;

        if (x->next == 0)
                x->begin_usec = record_now();
        MPI_Iallreduce(MPI_IN_PLACE, t->gradients + from, (int) (to - from), MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, &x->requests[x->next]);
        x->next++;
}

/* Is the forward tensor one whose gradient this node has just finished? */
static bool tensor_of(const struct exchange *x, size_t tensor, const struct node *node)
{
        const struct tensor *s = &x->t->model.tensors[tensor];

        return s->layer == node->layer && (s->bias ? node->bias_count > 0 : node->weight_count > 0);
}

static void node_ready(void *context, const struct node *node)
{
        struct exchange *x = context;
        int done;

        while (x->open_tensor > 0 && tensor_of(x, x->open_tensor - 1, node))
                x->open_tensor--;
        while (x->next < x->segment_count && x->ends[x->next] >= x->open_tensor)
                start_segment(x);
        if (x->next > 0) /* the library moves data only when it is called */
                MPI_Testall((int) x->next, x->requests, &done, MPI_STATUSES_IGNORE);
}

static int plan_segments(struct exchange *x, struct err *err)
{
        const struct numbers *given = &x->t->options->segments;
        size_t tensors = x->t->model.tensor_count;

        x->segment_count = given->count > 0 ? given->count : 1;
        x->ends = calloc(x->segment_count, sizeof(*x->ends));
        x->requests = calloc(x->segment_count, sizeof(MPI_Request));
        if (x->ends == NULL || x->requests == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu segments", x->segment_count);
        for (size_t i = 0; i < given->count; i++) {
                if (given->values[i] >= tensors || (i > 0 && given->values[i] <= given->values[i - 1]) ||
                    (i + 1 == given->count && given->values[i] != tensors - 1))
                        return err_set(err, -EINVAL,
                                       "--segments: rising tensor numbers that end with %zu, the last one, "
                                       "are wanted",
                                       tensors - 1);
                x->ends[i] = tensors - 1 - given->values[i];
        }
        return 0;
}

/* Two levels: within the group, between the leaders, back into the group. */
static int grouped_step(struct exchange *x, struct err *err)
{
        struct training *t = x->t;
        size_t count = t->model.parameter_count;
        uint64_t at;
        int r = training_gradient(t, t->step, (size_t) t->world.rank, NULL, NULL, err);

        if (r < 0)
                return r;
        at = record_now();
        group_add(&x->group, t->gradients, count);
        if (x->group.leader)
                MPI_Allreduce(MPI_IN_PLACE, t->gradients, (int) count, MPI_FLOAT, MPI_SUM,
                              x->group.all_leaders);
        group_spread(&x->group, t->gradients, count);
        at = record_done(&t->record, DOING_EXCHANGE, t->step, at);
        backend_to_device(&t->backend, t->gradients);
        training_update(t, t->gradients);
        (void) record_done(&t->record, DOING_UPDATE, t->step, at);
        r = training_finish_step(t, t->step, err);
        return r < 0 ? r : training_checkpoint(t, t->step, err);
}

static int one_step(struct exchange *x, struct err *err)
{
        struct training *t = x->t;
        uint64_t at;
        int r;

        x->next = 0;
        x->open_tensor = t->model.tensor_count;
        r = training_gradient(t, t->step, (size_t) t->world.rank, node_ready, x, err);
        if (r < 0)
                return r;
        at = record_now();
        t->record.hidden_usec += at - x->begin_usec;
        MPI_Waitall((int) x->segment_count, x->requests, MPI_STATUSES_IGNORE);
        (void) record_done(&t->record, DOING_EXCHANGE, t->step, x->begin_usec);
        at = record_done(&t->record, DOING_WAIT, t->step, at);
        backend_to_device(&t->backend, t->gradients);
        training_update(t, t->gradients);
        (void) record_done(&t->record, DOING_UPDATE, t->step, at);
        r = training_finish_step(t, t->step, err);
        return r < 0 ? r : training_checkpoint(t, t->step, err);
}

int strategy_allreduce(struct training *t, struct err *err)
{
        struct exchange x = { .t = t };
        int r;

        if (!t->world.parallel)
                return strategy_serial(t, err);
        r = group_open(&x.group, t, err);
        if (r == 0)
                r = plan_segments(&x, err);
        r = world_agree(&t->world, r, err);
        t->agreed_error = r < 0;
        for (; r == 0 && t->step < t->last_step; t->step++)
                r = x.group.grouped ? grouped_step(&x, err) : one_step(&x, err);
        group_close(&x.group);
        free(x.ends);
        free(x.requests);
        return r;
}
