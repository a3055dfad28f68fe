/* Probe child: the process that asks one vendor's library for the agent. It may hang or crash; the agent
 * outlives that. */
#pragma once

/* probe_child_run() - the child's whole life: argv[2] is the vendor, argv[3] a library's path or "". Reads a
 * byte from descriptor 0 for each request, answers on descriptor 1: a line a device, then "end", or "error
 * why". Return: exit code. */
#define PROBE_CHILD_REQUEST_SAMPLES '\n' /* answered with lines of agent/probe/probe_sample.h */
#define PROBE_CHILD_REQUEST_LINKS   'l'  /* answered with lines of agent/inventory/link_report_line.h */
#define PROBE_CHILD_ARGUMENT        "--probe-child"
#define PROBE_CHILD_EXIT_ABSENT     3 /* there is no library */
#define PROBE_CHILD_EXIT_REFUSED    4 /* there is one, and it does not work */
int probe_child_run(int argc, char **argv);
