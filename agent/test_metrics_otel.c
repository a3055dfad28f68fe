/* What OpenTelemetry's names say of errors, memory and states, and that they say nothing of what is not
 * known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/metrics_otel.h"
#include "base/cleanup.h"

struct fixture {
        struct judge_record record;
        struct probe_sample sample;
        struct metrics_row row;
};

static void begin(struct fixture *f)
{
        *f = (struct fixture){ .row = { .record = &f->record, .sample = &f->sample } };
        probe_sample_init(&f->sample, "0000:01:00.0");
        (void) text_copy(f->row.device.pci, sizeof(f->row.device.pci), "0000:01:00.0");
        (void) text_copy(f->row.device.id, sizeof(f->row.device.id), "GPU-1");
}

/* @labels: what follows those that every series has; NULL = there is no such series. */
static void expect(const struct fixture *f, const char *name, const char *labels, const char *value)
{
        CLEANUP(text_free) struct text page = { 0 };
        char end[200];
        const char *at;

        metrics_otel_families(&page, "n1", &f->row, 1);
        assert_false(page.failed);
        (void) snprintf(end, sizeof(end), "container=\"\"%s} %s\n", labels, value == NULL ? "" : value);
        if (value == NULL)
                end[strlen(end) - 1] = '\0';
        for (at = page.data; (at = strstr(at, name)) != NULL; at++)
                if (at > page.data && at[-1] == '\n' && at[strlen(name)] == '{') {
                        size_t line = strcspn(at, "\n") + 1;

                        if (memmem(at, line, end, strlen(end)) != NULL)
                                break;
                }
        if ((at != NULL) != (value != NULL))
                fail_msg("%s%s: %s in\n%s", name, labels, value == NULL ? "is" : "is not", page.data);
}

static void test_errors(void **state)
{
        struct fixture f;

        (void) state;
        begin(&f);
        expect(&f, "hw_errors_total", ",error_type=\"corrected\"", NULL);
        f.record.counters.known = true;
        f.record.counters.ras_correctable = 7;
        f.record.counters.ras_uncorrectable = 1;
        expect(&f, "hw_errors_total", ",error_type=\"corrected\"", "7");
        expect(&f, "hw_errors_total", ",error_type=\"uncorrected\"", "1");
        f.sample.values[PROBE_ECC_CORRECTABLE] = 9; /* the same errors, counted by the library */
        expect(&f, "hw_errors_total", ",error_type=\"corrected\"", "9");
        expect(&f, "hw_errors_total", ",error_type=\"uncorrected\"", "1");
}

static void test_memory(void **state)
{
        struct fixture f;

        (void) state;
        begin(&f);
        expect(&f, "hw_gpu_memory_limit_bytes", "", NULL);
        f.row.device.memory_bytes = 100;
        f.sample.values[PROBE_MEMORY_USED] = 25;
        expect(&f, "hw_gpu_memory_limit_bytes", "", "100");
        expect(&f, "hw_gpu_memory_utilization_ratio", "", "0.25");
        f.sample.values[PROBE_MEMORY_TOTAL] = 50;
        expect(&f, "hw_gpu_memory_limit_bytes", "", "50");
        expect(&f, "hw_gpu_memory_utilization_ratio", "", "0.5");
        f.row.sample = NULL; /* the library is silent */
        expect(&f, "hw_gpu_memory_usage_bytes", "", NULL);
        expect(&f, "hw_gpu_memory_utilization_ratio", "", NULL);
        expect(&f, "hw_gpu_memory_limit_bytes", "", "100");
}

static void test_states(void **state)
{
        static const struct {
                enum device_health health;
                const char *state;
        } rows[] = { { HEALTH_HEALTHY, "ok" },
                     { HEALTH_DEGRADED, "degraded" },
                     { HEALTH_UNHEALTHY, "failed" },
                     { HEALTH_QUARANTINED, "failed" },
                     { HEALTH_UNKNOWN, NULL } };
        static const char *const states[] = { "ok", "degraded", "failed" };
        struct fixture f;

        (void) state;
        begin(&f);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                for (size_t s = 0; s < ARRAY_SIZE(states); s++) {
                        char label[64];

                        f.row.device.health = rows[i].health;
                        (void) snprintf(label, sizeof(label), ",hw_state=\"%s\"", states[s]);
                        expect(&f, "hw_status", label,
                               rows[i].state == NULL                   ? NULL
                               : strcmp(rows[i].state, states[s]) == 0 ? "1"
                                                                       : "0");
                }
        f.row.device.health = HEALTH_HEALTHY;
        f.row.device.pci[0] = '\0'; /* a CPU */
        expect(&f, "hw_status", ",hw_state=\"ok\"", NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_memory),
                cmocka_unit_test(test_states),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
