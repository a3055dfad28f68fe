/* Real allreduces over a simulated backward pass, for bench_segment_tuning: what does a cut of the gradients
 * cost?
 *
 *   segment_steps FILE fit             times the allreduce of sizes up to all gradients: lines "bytes ms"
 *   segment_steps FILE steps N I,J,... N steps with segments that end at tensors I, J, ...: "exposed ms", the
 * median
 *
 * FILE: a line "bytes ready_ms" a tensor, in backward order. Computing is waiting until a tensor's time has
 * come; meanwhile the library is called, since it moves data only then. The last line is "seconds" that it
 * took. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSORS_MAX  4096
#define STEPS_MAX    1000
#define FIT_REPEATS  5
#define SLICE_FLOATS 65536

static double bytes_of[TENSORS_MAX], ready_ms[TENSORS_MAX];
static size_t count;

static int by_size(const void *a, const void *b)
{
        double left = *(const double *) a, right = *(const double *) b;

        return (left > right) - (left < right);
}

static double median(double *values, size_t n)
{
        qsort(values, n, sizeof(*values), by_size);
        return values[n / 2];
}

static void read_tensors(const char *path)
{
        FILE *file = fopen(path, "r");

        while (file != NULL && count < TENSORS_MAX &&
               fscanf(file, "%lf %lf", &bytes_of[count], &ready_ms[count]) == 2)
                count++;
        if (file != NULL)
                (void) fclose(file);
}

/* One call, as the steps make it. */
static void reduce(float *gradients, size_t floats, MPI_Request *request)
{
        MPI_Iallreduce(MPI_IN_PLACE, gradients, (int) floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
}

static void fit(float *gradients, double total_bytes, int rank)
{
        for (double size = 4096; size < 4 * total_bytes; size *= 4) {
                double bytes = size < total_bytes ? size : total_bytes, times[FIT_REPEATS];

                for (int i = 0; i < FIT_REPEATS; i++) {
                        MPI_Request request;
                        double start;

                        MPI_Barrier(MPI_COMM_WORLD);
                        start = MPI_Wtime();
                        reduce(gradients, (size_t) bytes / 4, &request);
                        MPI_Wait(&request, MPI_STATUS_IGNORE);
                        times[i] = (MPI_Wtime() - start) * 1e3;
                }
                if (rank == 0)
                        printf("%.0f %.6f\n", bytes, median(times, FIT_REPEATS));
        }
}

/* The segments of a step: one call at a time, in order, as a communication stream runs them. */
struct stream {
        float *gradients;
        const size_t *ends;
        size_t segments, started, ready; /* ready: segments whose last tensor is there */
        size_t at;                       /* floats given to calls */
        MPI_Request request;
};

static void advance(struct stream *stream)
{
        int done = 1;

        if (stream->request != MPI_REQUEST_NULL)
                MPI_Test(&stream->request, &done, MPI_STATUS_IGNORE);
        if (done && stream->started < stream->ready) {
                size_t floats = 0;

                for (size_t k = stream->started == 0 ? 0 : stream->ends[stream->started - 1] + 1;
                     k <= stream->ends[stream->started]; k++)
                        floats += (size_t) bytes_of[k] / 4;
                reduce(stream->gradients + stream->at, floats, &stream->request);
                stream->at += floats;
                stream->started++;
        }
}

static double step(float *gradients, const size_t *ends, size_t segments)
{
        struct stream stream = {
                .gradients = gradients, .ends = ends, .segments = segments, .request = MPI_REQUEST_NULL
        };
        double start, exposed;

        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (size_t i = 0; i < count; i++) {
                while ((MPI_Wtime() - start) * 1e3 < ready_ms[i])
                        advance(&stream);
                if (stream.ready < segments && ends[stream.ready] == i)
                        stream.ready++;
                advance(&stream);
        }
        exposed = MPI_Wtime();
        while (stream.started < segments || stream.request != MPI_REQUEST_NULL)
                advance(&stream);
        exposed = (MPI_Wtime() - exposed) * 1e3;
        MPI_Allreduce(MPI_IN_PLACE, &exposed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return exposed;
}

static void steps(float *gradients, int number, char *list, int rank)
{
        size_t ends[TENSORS_MAX], segments = 0;
        double exposed[STEPS_MAX];

        for (char *word = strtok(list, ","); word != NULL && segments < TENSORS_MAX; word = strtok(NULL, ","))
                ends[segments++] = strtoul(word, NULL, 10);
        for (int i = 0; i < number && i < STEPS_MAX; i++)
                exposed[i] = step(gradients, ends, segments);
        if (rank == 0)
                printf("exposed %.6f\n", median(exposed, (size_t) number));
}

int main(int argc, char **argv)
{
        double total_bytes = 0, start;
        float *gradients;
        int rank;

        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (argc < 3)
                MPI_Abort(MPI_COMM_WORLD, 2);
        read_tensors(argv[1]);
        for (size_t i = 0; i < count; i++)
                total_bytes += bytes_of[i];
        gradients = calloc((size_t) total_bytes / 4 + SLICE_FLOATS, sizeof(*gradients));
        if (gradients == NULL || count == 0)
                MPI_Abort(MPI_COMM_WORLD, 2);
        memset(gradients, 0, (size_t) total_bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        if (strcmp(argv[2], "fit") == 0)
                fit(gradients, total_bytes, rank);
        else if (argc == 5)
                steps(gradients, atoi(argv[3]), argv[4], rank);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
                printf("seconds %.6f\n", MPI_Wtime() - start);
        free(gradients);
        MPI_Finalize();
        return 0;
}
