/* Duration: a time span for people, as short as it says enough: "12s", "45m", "3.5h". Pure. */
#pragma once

#define DURATION_BYTES 32

/* duration_format() - below 100 seconds in seconds, below 100 minutes in minutes, else in hours.
 * @seconds: not finite or negative = not known
 * Return: ret; "" = not known. */
const char *duration_format(char ret[DURATION_BYTES], double seconds);
