/* Any bytes as what a rank writes to REMUDA_PROGRESS, and as its report: whole lines alone count, each once,
 * however the file grew; no line is a figure that cannot be. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job/launcher/rank_watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_lines(const uint8_t *data, size_t size)
{
        size_t good = 0, begin = 0;

        for (size_t i = 0; i < size; i++) {
                struct progress_line line;

                if (data[i] != '\n')
                        continue;
                if (rank_watch_line((const char *) data + begin, i - begin, &line)) {
                        good++;
                        if (!isfinite(line.loss) || !isfinite(line.samples_per_s) ||
                            (!line.has_loss && line.loss != 0))
                                abort();
                }
                begin = i + 1;
        }
        return good;
}

/* What is told when the file is looked at as it grows, `step` bytes at a time. */
static size_t look(const uint8_t *data, size_t size, size_t step, off_t *offset, struct progress_rank *rank)
{
        int fd = memfd_create("progress", MFD_CLOEXEC);
        char path[64];
        size_t told = 0;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        for (size_t at = 0; fd >= 0 && at < size; at += step) {
                size_t part = size - at < step ? size - at : step;

                if (write(fd, data + at, part) != (ssize_t) part)
                        abort();
                told += rank_watch_progress(path, offset, rank, 1000 + at);
                if (*offset < 0 || (size_t) *offset > at + part || (*offset > 0 && data[*offset - 1] != '\n'))
                        abort();
        }
        if (rank_watch_progress(path, offset, rank, 1000 + size) != 0)
                abort();
        (void) close(fd);
        return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct progress_rank at_once = { 0 }, grown = { 0 };
        off_t first = 0, second = 0;
        struct rank_watch_report report;
        size_t good;
        char path[64];
        int fd;

        if (size == 0 || size > 65536)
                return 0;
        good = count_lines(data, size);
        if (look(data, size, size, &first, &at_once) != good ||
            look(data, size, 1 + data[0] % 64 + size / 64, &second, &grown) != good || first != second)
                abort();
        if (at_once.step != grown.step || at_once.samples != grown.samples ||
            at_once.reported != (good > 0) || !isfinite(at_once.busy_ms) ||
            !isfinite(at_once.usual_busy_ms) || at_once.busy_ms < 0)
                abort();
        fd = memfd_create("report", MFD_CLOEXEC);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (fd < 0 || write(fd, data, size) != (ssize_t) size)
                abort();
        if (!rank_watch_report(path, &report) && (report.pid != 0 || report.ended))
                abort();
        (void) close(fd);
        return 0;
}
