/* The kernels of the opencl backend. Buffers come with an offset in floats. No contraction of a * b + c: results are
 * then those of plain loops on a host. */
#pragma OPENCL FP_CONTRACT OFF

/* As trainer/operators/relu.h. */
float relu_of(float x)
{
        float low = fmax(x, 0.0f), part = fmin(low, 0.5f);

        return part * part + (low - part);
}

float relu_slope(float y)
{
        return sqrt(fmin(y * 4, 1.0f));
}

kernel void bias_add(global const float *x, ulong x0, global const float *b, ulong b0, global float *y, ulong y0, ulong cols,
                 int activate)
{
        size_t i = get_global_id(0);
        float v = x[x0 + i] + b[b0 + i % cols];

        y[y0 + i] = activate ? relu_of(v) : v;
}

/* One sum per column and range of rows; sums_add() brings the ranges together in order. */
kernel void sums(global const float *x, ulong x0, global float *partial, ulong p0, ulong rows, ulong cols)
{
        size_t col = get_global_id(0), range = get_global_id(1), ranges = get_global_size(1);
        float sum = 0;

        for (size_t r = rows * range / ranges; r < rows * (range + 1) / ranges; r++)
                sum += x[x0 + r * cols + col];
        partial[p0 + range * cols + col] = sum;
}

kernel void sums_add(global const float *partial, ulong p0, global float *db, ulong d0, ulong ranges, ulong cols)
{
        size_t col = get_global_id(0);
        float sum = 0;

        for (size_t i = 0; i < ranges; i++)
                sum += partial[p0 + i * cols + col];
        db[d0 + col] += sum;
}

kernel void scale(global const float *x, ulong x0, global float *y, ulong y0, float factor)
{
        size_t i = get_global_id(0);

        y[y0 + i] = factor * x[x0 + i];
}

kernel void plus(global const float *x, ulong x0, global const float *other, ulong other0, global float *y, ulong y0, uint activate)
{
        size_t i = get_global_id(0);
        float v = x[x0 + i] + other[other0 + i];

        y[y0 + i] = activate ? relu_of(v) : v;
}

kernel void relu(global const float *x, ulong x0, global float *y, ulong y0)
{
        size_t i = get_global_id(0);

        y[y0 + i] = relu_of(x[x0 + i]);
}

kernel void relu_gradient(global const float *y, ulong y0, global const float *dy, ulong dy0, global float *dx, ulong dx0)
{
        size_t i = get_global_id(0);

        dx[dx0 + i] = dy[dy0 + i] * relu_slope(y[y0 + i]);
}

/* One work item a float of a patch. */
kernel void im2col(global const float *x, ulong x0, global float *patches, ulong p0, ulong height, ulong width,
                   ulong channels, ulong window)
{
        size_t i = get_global_id(0), line = window * channels, at = i / (window * line), half_window = window / 2;
        size_t k = i / line % window, l = i % line / channels, c = i % channels;
        size_t sample = at / (height * width), row = at / width % height + k, col = at % width + l;
        bool inside = row >= half_window && col >= half_window && row - half_window < height && col - half_window < width;

        patches[p0 + i] =
                inside ? x[x0 + ((sample * height + row - half_window) * width + col - half_window) * channels + c] : 0;
}

/* One work item an input float: adds what every window that covers it says. */
kernel void col2im(global const float *patches, ulong p0, global float *dx, ulong dx0, ulong height, ulong width,
                    ulong channels, ulong window)
{
        size_t i = get_global_id(0), c = i % channels, at = i / channels, half_window = window / 2;
        size_t row = at / width % height, col = at % width, sample = at / (height * width);
        float sum = 0;

        for (size_t k = 0; k < window; k++) {
                if (row + half_window < k || row + half_window - k >= height)
                        continue;
                for (size_t l = 0; l < window; l++) {
                        if (col + half_window < l || col + half_window - l >= width)
                                continue;
                        sum += patches[p0 +
                                       ((((sample * height + row + half_window - k) * width + col + half_window - l) * window + k) * window + l) * channels + c];
                }
        }
        dx[dx0 + i] = sum;
}

/* One work item an output float. activate: bias, then ReLU. */
kernel void pool(global const float *x, ulong x0, global const float *b, ulong b0, global float *y, ulong y0,
                 global uchar *which, ulong w0, ulong height, ulong width, ulong channels, int activate)
{
        size_t i = get_global_id(0), c = i % channels, at = i / channels, across = width / 2, down = height / 2;
        size_t in = ((at / (across * down) * height + at / across % down * 2) * width + at % across * 2) * channels + c;
        float best = x[x0 + in];
        uchar place = 0;

        for (uchar k = 1; k < 4; k++) {
                float v = x[x0 + in + (k & 1) * channels + (k >> 1) * width * channels];

                if (v > best) {
                        best = v;
                        place = k;
                }
        }
        if (activate) {
                best += b[b0 + c];
                best = relu_of(best);
        }
        y[y0 + i] = best;
        which[w0 + i] = place;
}

/* One work item an input float. masked: only where the activation y is positive. */
kernel void pool_gradient(global const uchar *which, ulong w0, global const float *y, ulong y0, global const float *dy,
                          ulong dy0, global float *dx, ulong dx0, ulong height, ulong width, ulong channels, int masked)
{
        size_t i = get_global_id(0), c = i % channels, at = i / channels;
        size_t row = at / width % height, col = at % width, sample = at / (height * width);
        size_t out = ((sample * (height / 2) + row / 2) * (width / 2) + col / 2) * channels + c;
        float v = 0;

        if (row / 2 < height / 2 && col / 2 < width / 2 && which[w0 + out] == (row & 1) * 2 + (col & 1))
                v = masked ? dy[dy0 + out] * relu_slope(y[y0 + out]) : dy[dy0 + out];
        dx[dx0 + i] = v;
}

kernel void softmax(global const float *x, ulong x0, global float *p, ulong p0, ulong cols)
{
        size_t row = get_global_id(0) * cols;
        float most = x[x0 + row], sum = 0;

        for (size_t c = 1; c < cols; c++)
                most = fmax(most, x[x0 + row + c]);
        for (size_t c = 0; c < cols; c++) {
                float v = exp(x[x0 + row + c] - most);

                p[p0 + row + c] = v;
                sum += v;
        }
        for (size_t c = 0; c < cols; c++)
                p[p0 + row + c] /= sum;
}

kernel void softmax_gradient(global const float *p, ulong p0, global const float *dp, ulong dp0, global float *dx, ulong dx0,
                             ulong cols)
{
        size_t row = get_global_id(0) * cols;
        float sum = 0;

        for (size_t c = 0; c < cols; c++)
                sum += p[p0 + row + c] * dp[dp0 + row + c];
        for (size_t c = 0; c < cols; c++)
                dx[dx0 + row + c] = p[p0 + row + c] * (dp[dp0 + row + c] - sum);
}

kernel void pick(global const float *p, ulong p0, global const int *labels, ulong l0, global float *picked, ulong q0,
                 ulong cols)
{
        size_t row = get_global_id(0);

        picked[q0 + row] = p[p0 + row * cols + labels[l0 + row]];
}

kernel void cross_entropy_gradient(global const float *p, ulong p0, global const int *labels, ulong l0, global float *dp,
                                   ulong dp0, ulong cols, float factor)
{
        size_t i = get_global_id(0);

        dp[dp0 + i] = labels[l0 + i / cols] == i % cols ? -factor / fmax(p[p0 + i], 1e-30f) : 0;
}

kernel void softmax_cross_entropy_gradient(global const float *p, ulong p0, global const int *labels, ulong l0,
                                           global float *dx, ulong dx0, ulong cols, float factor)
{
        size_t i = get_global_id(0);
        float v = factor * p[p0 + i];

        dx[dx0 + i] = labels[l0 + i / cols] == i % cols ? v - factor : v;
}

kernel void embed(global const float *table, ulong t0, global const float *ids, ulong i0, global float *y, ulong y0,
                  ulong width)
{
        size_t i = get_global_id(0);

        y[y0 + i] = table[t0 + (ulong) ids[i0 + i / width] * width + i % width];
}

/* One work item a column of the table: rows come in order, no two items write one place. */
kernel void embed_gradient(global const float *ids, ulong i0, global const float *dy, ulong dy0, global float *dtable,
                           ulong t0, ulong rows, ulong width)
{
        size_t c = get_global_id(0);

        for (size_t r = 0; r < rows; r++)
                dtable[t0 + (ulong) ids[i0 + r] * width + c] += dy[dy0 + r * width + c];
}

kernel void update(global const float *g, ulong g0, global float *w, ulong w0, float rate)
{
        size_t i = get_global_id(0);

        w[w0 + i] -= rate * g[g0 + i];
}

kernel void update_momentum(global const float *g, ulong g0, global float *w, ulong w0, global float *velocity, ulong v0,
                            float rate, float momentum)
{
        size_t i = get_global_id(0);
        float v = momentum * velocity[v0 + i] + g[g0 + i];

        velocity[v0 + i] = v;
        w[w0 + i] -= rate * v;
}
