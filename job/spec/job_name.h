/* Job name: the names that a job may have and give. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define JOB_DNS_BYTES  254 /* of a DNS name */
#define JOB_NAME_BYTES 64  /* a DNS label: [a-z0-9-], at most 63, so that it may be a label's value */

/* job_name_valid() - a DNS label: 1-63 of [a-z0-9-], neither first nor last a '-'. */
bool job_name_valid(const char *name);

/* job_name_dns_valid() - a DNS subdomain as Kubernetes has it: 1-253 of [a-z0-9-] in parts with dots between
 * them, no '-' first or last in one. A part may be longer than a label of DNS. */
bool job_name_dns_valid(const char *name, size_t length);
