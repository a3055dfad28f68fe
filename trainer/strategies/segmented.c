/* A segment is started by the node that completes it; the mover, or whoever is called, moves what is under
 * way. */
#include "trainer/strategies/segmented.h"

static void start_segment(struct segmented *x)
{
        const struct training *t = x->t;
        size_t first = x->ends[x->next], end = x->next > 0 ? x->ends[x->next - 1] : t->model.tensor_count;
        size_t from = t->model.tensors[first].offset;
        size_t to = end < t->model.tensor_count ? t->model.tensors[end].offset : t->model.parameter_count;
        int count = (int) (to - from);
        float *gradients = t->sums + from;

        MPI_Iallreduce(MPI_IN_PLACE, gradients, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                       &x->requests[x->next]);
        x->next++;
}

/* Is the forward tensor one whose gradient this node has just finished? */
static bool tensor_of(const struct segmented *x, size_t tensor, const struct model_node *node)
{
        const struct model_tensor *s = &x->t->model.tensors[tensor];

        return s->bias ? node->bias_count > 0 && node->bias == s->offset
                       : node->weight_count > 0 && node->weight == s->offset;
}

void segmented_begin(struct segmented *x)
{
        x->next = 0;
        x->open_tensor = x->t->model.tensor_count;
        x->begin_usec = 0;
        x->given = false;
        x->called_usec = 0;
}

void segmented_take(struct segmented *x)
{
        if (x->given)
                mover_take(x->mover);
        x->given = false;
}

void segmented_ready(void *context, const struct model_node *node)
{
        struct segmented *x = context;
        uint64_t at;
        bool due;
        int done;

        while (x->open_tensor > 0 && tensor_of(x, x->open_tensor - 1, node))
                x->open_tensor--;
        if (x->open_tensor == 0) /* the pass is over: from here on there is nothing left but waiting */
                return;
        due = x->next < x->count && x->ends[x->next] >= x->open_tensor;
        if (!due && (x->next == 0 || x->mover != NULL)) /* nothing is under way, or it moves by itself */
                return;
        at = record_now();
        segmented_take(x);
        while (x->next < x->count && x->ends[x->next] >= x->open_tensor) {
                if (x->next == 0)
                        x->begin_usec = at;
                start_segment(x);
        }
        if (x->next > 0)
                MPI_Testall((int) x->next, x->requests, &done, MPI_STATUSES_IGNORE);
        mover_give(x->mover, x->requests, x->next);
        x->given = x->mover != NULL;
        x->called_usec +=
                (x->recorded ? record_done(&x->t->record, RECORD_WAIT, x->t->step, at) : record_now()) - at;
}

void segmented_start(struct segmented *x)
{
        segmented_take(x);
        while (x->next < x->count) /* the last one always: it holds the first tensor, which is ready last */
                start_segment(x);
}

void segmented_wait(struct segmented *x)
{
        segmented_start(x);
        mover_wait(x->requests, x->count);
}
