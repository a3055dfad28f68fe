/* Finding: what one look at a device has shown, the worst of it. Pure. */
#pragma once

enum finding_level { FINDING_GOOD, FINDING_DEGRADED, FINDING_SILENT, FINDING_BAD, FINDING_COUNT };

/* What one look at a device, by all its probes together, has found. Zero = good. */
struct finding {
        enum finding_level level;
        char rule[48];     /* the rule that decided: "link-width" */
        char reason[32];   /* CamelCase: "LinkDegraded" */
        char message[160]; /* a sentence; without figures that change by themselves */
};

/* finding_add() - what another probe says; the worse one stays, the first of equal ones. */
void finding_add(struct finding *finding, enum finding_level level, const char *rule, const char *reason,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
