/* Object name: what Kubernetes takes as the name of an object, of a label, of a resource. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OBJECT_NAME_DNS_BYTES   254 /* of a DNS name */
#define OBJECT_NAME_LABEL_BYTES 64  /* of a DNS label, and of a word */

/* object_name_label_valid() - a DNS label: 1-63 of [a-z0-9-], neither first nor last a '-'. */
bool object_name_label_valid(const char *name);

/* object_name_dns_valid() - a DNS subdomain as Kubernetes has it: 1-253 of [a-z0-9-] in parts with dots
 * between them, no '-' first or last in one. A part may be longer than a label of DNS. */
bool object_name_dns_valid(const char *name, size_t length);

/* object_name_word_valid() - a label's value, the last part of its name or of a resource's: 1-63 letters,
 * digits, '-', '_' and '.', the latter three neither first nor last. */
bool object_name_word_valid(const char *word);
