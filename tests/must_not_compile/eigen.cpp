// Says: tensors are row-major: use Eigen::RowMajor, or pass matrix.transpose()
// Says: a tensor may be written to: pass a matrix that is not const, or move it in
// Says: an expression of Eigen has no elements yet: assign it to a matrix, and pass that
// Says: as_tensor takes matrices, arrays and vectors of Eigen, or parts of them
#include <vector>

#include <cohort/eigen/map.h>

using cohort::Tensor;
using cohort::eigen::as_tensor;
using Rows = cohort::eigen::RowMajorMatrix<float>;

#ifdef MISUSE
using Matrix = Eigen::MatrixXf;
using Kept = const Rows;
using Numbers = std::vector<float>;
#else
using Matrix = Rows;
using Kept = Rows;
using Numbers = Eigen::VectorXf;
#endif

Tensor columns(Matrix& matrix) { return as_tensor(matrix); }
Tensor kept(Kept& matrix) { return as_tensor(matrix); }
Tensor numbers(Numbers& values) { return as_tensor(values); }
#ifdef MISUSE
Tensor sum(Rows& a, Rows& b) { return as_tensor(a + b); }
#else
Tensor sum(Rows& a, Rows& b) { return as_tensor(Rows(a + b)); }
#endif
