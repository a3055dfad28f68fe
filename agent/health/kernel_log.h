/* Kernel log: follows ROOT/dev/kmsg (the device on a live machine, an ordinary file elsewhere) and hands over
 * the faults it tells of. At the start, records of the last ten minutes are read too, but none that was read
 * before a restart (by its sequence number). Where the device may not be opened, as in a container that is
 * not privileged, the kernel's buffer is asked each second by syslog(2), which CAP_SYSLOG allows. A log that
 * may not be read in either way is said once and gone without. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "agent/health/kernel_fault.h"
#include "base/err.h"

struct kernel_log;

typedef void (*kernel_log_fault)(void *userdata, const struct kernel_fault *fault);

/* kernel_log_new() - @after_sequence: of the last record that was read before, 0 = none
 * Return: 0; -ENOENT when there is no log; another negative errno when it cannot be read. */
int kernel_log_new(sd_event *loop, const char *root, uint64_t after_sequence, kernel_log_fault fault,
                   void *userdata, struct kernel_log **ret, struct err *err);
void kernel_log_free(struct kernel_log *log); /* accepts NULL */

/* kernel_log_poll() - an ordinary file: read what was added. The device comes by itself. */
void kernel_log_poll(struct kernel_log *log);

/* kernel_log_take_buffer() - the text of the kernel's buffer, "<6>[   12.345678] words" a line: hands over
 * what came after the last call. @text: changed. @now_usec: CLOCK_MONOTONIC */
void kernel_log_take_buffer(struct kernel_log *log, char *text, uint64_t now_usec);

uint64_t kernel_log_sequence(const struct kernel_log *log); /* of the last record read; 0 = they have none */

const char *kernel_log_way(const struct kernel_log *log); /* "kmsg", "syslog", "file"; NULL: "none" */
