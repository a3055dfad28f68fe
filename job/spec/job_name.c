/* Labels of DNS and names of several. */
#include "job/spec/job_name.h"

#include <string.h>

bool job_name_valid(const char *name)
{
        size_t length = strlen(name);

        return length > 0 && length < JOB_NAME_BYTES &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length && name[0] != '-' &&
               name[length - 1] != '-';
}

bool job_name_dns_valid(const char *name, size_t length)
{
        bool edge = true; /* the last character, or what comes before the first, parts two labels */

        for (size_t i = 0; i < length; i++) {
                bool letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
                bool last = i + 1 == length || name[i + 1] == '.';

                if (name[i] == '.' ? edge : !letter && (name[i] != '-' || edge || last))
                        return false;
                edge = name[i] == '.';
        }
        return length < JOB_DNS_BYTES && !edge;
}
