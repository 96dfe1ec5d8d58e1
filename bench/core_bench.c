/*
 * core_bench.c: runs cases on request, so that contenders can be measured in turns. bench/run.py asks; the peers in
 * bench/peers speak the same.
 *
 *     core_bench attnd [KERNEL]    lines in, one line out for each:
 *         about                 about TEXT
 *         prepare CASE          ready PID | unsupported WHY            (CASE: see bench_case.h)
 *         run N                 ms T_1 … T_N
 *         results               output MEAN X… [maps MEAN X…] …        (see bench_print_samples)
 *         done                  done: gives everything back
 *     core_bench machine        measures the machine:
 *         about                 about VECTORS
 *         peak DTYPE THREADS [VECTORS]    gflops X; 0 without such vectors
 *         read BYTES THREADS    gbs X
 *
 * Whatever else comes gets "error WHY". The program ends with its input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "contender.h"
#include "machine.h"

enum { LINE_MAX_BYTES = 512, RUNS_MAX = 1000000 };

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static struct contender *prepare(const char *text)
{
    bench_case c;
    if (!bench_case_read(&c, text)) {
        printf("error not a case: %s\n", text);
        return NULL;
    }
    struct contender *own = contender_prepare(&c);
    if (own == NULL)
        printf("unsupported no way to do it, or no memory\n");
    else
        printf("ready %ld\n", (long)getpid());
    return own;
}

struct timing {
    struct contender *own;
    long runs;
};

static void time_runs(void *argument)
{
    const struct timing *timing = argument;
    printf("ms");
    for (long i = 0; i < timing->runs; i++) {
        const double start = now_ms();
        if (!contender_run(timing->own)) {
            printf("\nerror the run failed\n");
            return;
        }
        printf(" %.6f", now_ms() - start);
    }
    printf("\n");
}

static void run(struct contender *own, const char *text)
{
    struct timing timing = {.own = own, .runs = strtol(text, NULL, 10)};
    if (own == NULL || timing.runs < 1 || timing.runs > RUNS_MAX || !contender_enter(own, time_runs, &timing))
        printf("error nothing to run\n");
}

static void print_results(const struct contender *own)
{
    if (own == NULL) {
        printf("error no results\n");
        return;
    }
    bench_result result[BENCH_RESULTS_MAX];
    const size_t count = contender_results(own, result);
    for (size_t i = 0; i < count; i++) {
        printf(i == 0 ? "%s" : " %s", result[i].name);
        bench_print_samples(&result[i].tensor);
    }
    printf("\n");
}

/* What follows the word in the line, NULL when the line begins with another word. */
static const char *after(const char *line, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(line, word, length) != 0 || (line[length] != '\0' && line[length] != ' '))
        return NULL;
    return line[length] == ' ' ? line + length + 1 : line + length;
}

static void obey_contender(struct contender **own, const char *line)
{
    const char *rest;
    if (after(line, "about") != NULL) {
        printf("about %s\n", contender_description());
    } else if ((rest = after(line, "prepare")) != NULL) {
        contender_release(*own);
        *own = prepare(rest);
    } else if ((rest = after(line, "run")) != NULL) {
        run(*own, rest);
    } else if (after(line, "results") != NULL) {
        print_results(*own);
    } else if (after(line, "done") != NULL) {
        contender_release(*own);
        *own = NULL;
        printf("done\n");
    } else {
        printf("error unknown: %s\n", line);
    }
}

static void obey_machine(const char *line)
{
    char dtype[16], vectors[16] = "";
    size_t bytes, threads;
    if (after(line, "about") != NULL)
        printf("about %s\n", machine_vectors());
    else if (sscanf(line, "peak %15s %zu %15s", dtype, &threads, vectors) >= 2 && threads > 0)
        printf("gflops %.3f\n", machine_peak_gflops(attn_dtype_from_name(dtype), threads, vectors));
    else if (sscanf(line, "read %zu %zu", &bytes, &threads) == 2 && threads > 0 && bytes < SIZE_MAX / 2)
        printf("gbs %.3f\n", machine_read_gbs(bytes, threads));
    else
        printf("error unknown: %s\n", line);
}

int main(int count, char **arguments)
{
    const char *role = count >= 2 ? arguments[1] : "";
    const bool is_machine = strcmp(role, "machine") == 0;
    if ((!is_machine && strcmp(role, "attnd") != 0) || count > (is_machine ? 2 : 3)) {
        fprintf(stderr, "usage: core_bench attnd [KERNEL] | machine\n");
        return 2;
    }
    if (count == 3 && !contender_use(arguments[2])) {
        fprintf(stderr, "core_bench: this processor has no kernel %s\n", arguments[2]);
        return 2;
    }
    struct contender *own = NULL;
    char line[LINE_MAX_BYTES];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (is_machine)
            obey_machine(line);
        else
            obey_contender(&own, line);
        fflush(stdout);
    }
    contender_release(own);
    return 0;
}
