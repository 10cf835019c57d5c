# Time and bus bandwidth over size, side by side. compare.sh sets: times, a CSV file of
# microseconds with a column per runner; columns, how many it has; factor, bus bandwidth over
# bytes per time; image, the file to write.
set terminal pngcairo size 1600,700 font "sans,11"
set output image
set datafile separator ","
set datafile missing ""
set logscale x 2
set format x "%.0b%B"
set xlabel "bytes"
set grid
set key top left
set multiplot layout 1,2

set title "Time"
set ylabel "microseconds"
set logscale y
plot for [c=2:columns] times using 1:c with linespoints linewidth 2 title columnheader(c)

set title "Bus bandwidth"
set ylabel "GB/s"
unset logscale y
plot for [c=2:columns] times using 1:(column(1) / column(c) / 1000 * factor) with linespoints linewidth 2 title columnheader(c)

unset multiplot
